import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { FailureBackoff } from './failure-backoff.ts'

const minutes = 60_000
const options = { freeFailures: 1, baseMs: minutes, capMs: 16 * minutes, memoryMs: 60 * minutes }

test('back-off begins after the free failures, doubles, and is bounded', async () => {
  const clock = new VirtualClock()
  const backoff = new FailureBackoff(clock, options)
  const lengths: number[] = []
  for (let failure = 0; failure < 7; failure++) {
    backoff.note(['a'])
    const leftMs = backoff.leftMs('a')
    lengths.push(leftMs / minutes)
    await clock.advance(leftMs)
    assert.equal(backoff.leftMs('a'), 0)
  }
  assert.deepEqual(lengths, [0, 1, 2, 4, 8, 16, 16])
  assert.equal(backoff.leftMs('b'), 0)
})

test('what is forgotten, and what happened long ago, counts from the beginning', async () => {
  const clock = new VirtualClock()
  const backoff = new FailureBackoff(clock, options)
  backoff.note(['a', 'b'])
  backoff.note(['a', 'b'])
  backoff.forget(['a'])
  backoff.note(['a'])
  assert.equal(backoff.leftMs('a'), 0)
  await clock.advance(61 * minutes)
  backoff.note(['b'])
  assert.equal(backoff.leftMs('b'), 0)
})

test('some key may pause as long as any does', async () => {
  const clock = new VirtualClock()
  const backoff = new FailureBackoff(clock, options)
  assert.equal(backoff.isAnyPausing, false)
  backoff.note(['a', 'b'])
  backoff.note(['a', 'b'])
  backoff.note(['a'])
  backoff.restore('c', 1, 3 * minutes)
  for (const [afterMs, expected] of [
    [minutes, true],
    [minutes, true],
    [minutes, false],
  ] as const) {
    await clock.advance(afterMs)
    assert.equal(backoff.isAnyPausing, expected)
    assert.equal(
      ['a', 'b', 'c'].some((key) => backoff.leftMs(key) > 0),
      expected,
    )
  }
})
