import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { aPod, startMs } from '../testing/objects.test-support.ts'
import { LoopTrigger } from './triggers.ts'

const { signal } = new AbortController()

function trigger(frequentLoops = true) {
  const clock = new VirtualClock(startMs)
  const loops = new LoopTrigger({ scanIntervalMs: 10_000, frequentLoops }, clock)
  /** How long the next iteration waits. */
  const wait = async (lastChangeMs?: number): Promise<number> => {
    const before = clock.now()
    const state = { isOver: false }
    const waiting = loops.next(lastChangeMs, signal).finally(() => {
      state.isOver = true
    })
    await clock.advance(0)
    for (let count = 0; count < 20 && !state.isOver; count++) await clock.advance(1000)
    await waiting
    return clock.now() - before
  }
  return { clock, loops, wait }
}

function unschedulableSince(ms: number): Pod {
  const lastTransitionTime = new Date(ms).toISOString()
  const pod = aPod('p')
  return {
    ...pod,
    status: {
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime }],
    },
  }
}

test('CAS-36 after a scale-up the next two iterations begin at once', async () => {
  const { clock, wait } = trigger()
  assert.equal(await wait(), 0)
  assert.equal(await wait(), 10_000)
  const changed = clock.now()
  for (let loop = 0; loop < 2; loop++) {
    await clock.advance(1)
    assert.equal(await wait(changed), 0)
  }
  await clock.advance(1)
  assert.equal(await wait(changed), 10_000)
})

test('CAS-36 without frequent loops every iteration waits', async () => {
  const { clock, loops, wait } = trigger(false)
  await wait()
  loops.observe(unschedulableSince(clock.now()))
  assert.equal(await wait(clock.now()), 10_000)
})

test('CAS-37 a pod that has just become unschedulable starts an iteration; an old one does not', async () => {
  const { clock, loops, wait } = trigger()
  await wait()
  loops.observe(unschedulableSince(clock.now() - 11_000))
  assert.equal(await wait(), 10_000)
  loops.observe(unschedulableSince(clock.now() - 1000))
  assert.equal(await wait(), 0)
  const before = clock.now()
  const waiting = loops.next(undefined, signal)
  await clock.advance(3000)
  loops.observe(unschedulableSince(clock.now()))
  await waiting
  assert.equal(clock.now() - before, 3000)
})
