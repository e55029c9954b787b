import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { KnownRequests } from './report.ts'

const minute = 60_000

/** Waits for requests in a process that stands by for ten minutes before it leads. */
function leading() {
  const clock = new VirtualClock()
  const requests = { isKnown: false }
  const known = new KnownRequests(requests, clock)
  let isSettled = false
  const settle = async (): Promise<void> => {
    isSettled = false
    await known.settle(new AbortController().signal)
    isSettled = true
  }
  return { clock, requests, settle, isSettled: () => isSettled }
}

test('GNG-45 a process that has stood by for long waits until the room that its predecessor kept is known', async () => {
  const { clock, isSettled, requests, settle } = leading()
  await clock.advance(10 * minute)
  const settled = settle()
  await clock.advance(10_000)
  assert.equal(isSettled(), false)
  requests.isKnown = true
  await clock.advance(1000)
  await settled
})

test('what cannot be read holds nothing up for longer than a minute', async () => {
  const { clock, isSettled, settle } = leading()
  const settled = settle()
  await clock.advance(minute - 1000)
  assert.equal(isSettled(), false)
  await clock.advance(2000)
  await settled
  await settle()
})
