import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { Rests } from './rests.ts'

const minutes = 60_000
const options = { freeFailures: 1, baseMs: minutes, capMs: 16 * minutes, memoryMs: 60 * minutes }

test('rests begin after the free failures, double, and are bounded', async () => {
  const clock = new VirtualClock()
  const rests = new Rests(clock, options)
  const lengths: number[] = []
  for (let failure = 0; failure < 7; failure++) {
    rests.note(['a'])
    const leftMs = rests.leftMs('a')
    lengths.push(leftMs / minutes)
    await clock.advance(leftMs)
    assert.equal(rests.leftMs('a'), 0)
  }
  assert.deepEqual(lengths, [0, 1, 2, 4, 8, 16, 16])
  assert.equal(rests.leftMs('b'), 0)
})

test('what is forgotten, and what happened long ago, counts from the beginning', async () => {
  const clock = new VirtualClock()
  const rests = new Rests(clock, options)
  rests.note(['a', 'b'])
  rests.note(['a', 'b'])
  rests.forget(['a'])
  rests.note(['a'])
  assert.equal(rests.leftMs('a'), 0)
  await clock.advance(61 * minutes)
  rests.note(['b'])
  assert.equal(rests.leftMs('b'), 0)
})
