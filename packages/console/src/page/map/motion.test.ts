import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Box } from './layout.ts'
import { Motion } from './motion.ts'

const box = (id: string, x: number, fill = 1): Box => ({ id, x, y: 0, size: 10, fill })

test('a square glides to where it is now, and fills up on its way', () => {
  const motion = new Motion({ grows: true })
  motion.moveTo([box('a', 0, 0.2)], 0, false)
  assert.equal(motion.isMoving(0), false, 'the first picture is there at once')
  motion.moveTo([box('a', 100, 0.8)], 1000, false)
  const [half] = motion.at(1150)
  assert.ok(half !== undefined && half.x > 0 && half.x < 100 && half.fill > 0.2 && half.fill < 0.8)
  assert.deepEqual(motion.at(1400), [box('a', 100, 0.8)])
})

test('what comes grows, and what has gone shrinks and is gone', () => {
  const motion = new Motion({ grows: true })
  motion.moveTo([box('a', 0), box('b', 20)], 0, false)
  motion.moveTo([box('a', 0), box('c', 20)], 1000, false)
  const sizes = new Map(motion.at(1150).map(({ id, size }) => [id, size]))
  assert.equal(sizes.get('a'), 10)
  for (const id of ['b', 'c']) assert.ok((sizes.get(id) ?? 0) > 0 && (sizes.get(id) ?? 10) < 10, id)
  assert.deepEqual(motion.at(1400), [box('a', 0), box('c', 20)])
})

test('where nothing grows only what has moved is on its way', () => {
  const motion = new Motion({ grows: false })
  motion.moveTo([box('a', 0), box('b', 20)], 0, false)
  motion.moveTo([box('a', 50), box('c', 20)], 1000, false)
  const [a, c] = motion.at(1150)
  assert.ok(a !== undefined && a.x > 0 && a.x < 50)
  assert.deepEqual(c, box('c', 20))
})

test('CON-24 whoever wants no motion sees none', () => {
  const motion = new Motion({ grows: true })
  motion.moveTo([box('a', 0)], 0, true)
  motion.moveTo([box('b', 100)], 1000, true)
  assert.equal(motion.isMoving(1000), false)
  assert.deepEqual(motion.at(1000), [box('b', 100)])
})
