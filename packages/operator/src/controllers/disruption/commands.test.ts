import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { commandTimeoutMs } from './commands.ts'
import { Retreats } from './retreats.ts'

const minutes = 60_000

test('DIS-142 a command has ten minutes, more the more nodes are in the queue, and an hour at most', () => {
  assert.deepEqual(
    [100, 10_000, 40_000, 100_000].map((nodes) => commandTimeoutMs(nodes) / minutes),
    [10, 13 + 1 / 3, 53 + 1 / 3, 60],
  )
})

test('nodes rest after their second command that came to nothing, twice as long each time, up to a quarter of an hour', async () => {
  const clock = new VirtualClock()
  const retreats = new Retreats(clock)
  const rests: number[] = []
  for (let i = 0; i < 7; i++) {
    retreats.note(['a'])
    let rest = 0
    for (; retreats.isResting('a'); rest++) await clock.advance(minutes)
    rests.push(rest)
  }
  assert.deepEqual(rests, [0, 1, 2, 4, 8, 16, 16])
  assert.equal(retreats.isResting('b'), false)
  retreats.note(['a'])
  retreats.forget(['a'])
  assert.equal(retreats.isResting('a'), false)
  retreats.note(['a'])
  assert.equal(retreats.isResting('a'), false)
})
