import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { Batcher } from './batcher.ts'

function aBatch() {
  const clock = new VirtualClock(0)
  const batcher = new Batcher(clock, 10_000, 1000)
  let closedAtMs: number | undefined
  const stop = new AbortController()
  const wait = async () => {
    await batcher.wait(stop.signal)
    closedAtMs = clock.now()
  }
  const waiting = wait()
  return { clock, batcher, stop, waiting, closedAt: () => closedAtMs }
}

test('SCH-17 a batch of one closes after the idle time', async () => {
  const { clock, batcher, closedAt } = aBatch()
  await clock.advance(5000)
  batcher.trigger('a')
  await clock.advance(2000)
  assert.equal(closedAt(), 6000)
})

test('SCH-18 the same pod again does not keep the window open', async () => {
  const { clock, batcher, closedAt } = aBatch()
  batcher.trigger('a')
  await clock.advance(900)
  batcher.trigger('a')
  await clock.advance(900)
  assert.equal(closedAt(), 1000)
})

test('SCH-19 new pods keep the window open up to its longest time', async () => {
  const { clock, batcher, closedAt } = aBatch()
  for (let i = 0; i < 30; i++) {
    batcher.trigger(`pod-${i}`)
    await clock.advance(500)
  }
  assert.equal(closedAt(), 10_000)
})

test('what came while nobody waited opens the next window at once', async () => {
  const clock = new VirtualClock(0)
  const batcher = new Batcher(clock, 10_000, 1000)
  batcher.trigger('a')
  let isClosed = false
  const wait = async () => {
    await batcher.wait(new AbortController().signal)
    isClosed = true
  }
  const waiting = wait()
  await clock.advance(1000)
  assert.ok(isClosed)
  await waiting
})

test('an abort ends the wait', async () => {
  const { stop, waiting } = aBatch()
  stop.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
})
