import assert from 'node:assert/strict'
import { test } from 'node:test'
import { array, assert as check, integer, property } from 'fast-check'
import { GroupBackoff } from './backoff.ts'

const minute = 60_000
const settings = {
  initialBackoffMs: 5 * minute,
  maxBackoffMs: 30 * minute,
  backoffResetTimeoutMs: 180 * minute,
}
const failure = { code: 'cloudProviderError', message: 'no quota' }

test('CAS-33 backs off for 5 min, longer after each failure that follows an expiry, and anew after 3 h', () => {
  const backoff = new GroupBackoff(settings)
  const failAt = (nowMs: number) => {
    backoff.fail('a', failure, nowMs)
    return ((backoff.of('a', nowMs)?.untilMs ?? Number.NaN) - nowMs) / minute
  }
  let nowMs = 0
  assert.equal(failAt(nowMs), 5)
  nowMs += 2 * minute
  assert.equal(failAt(nowMs), 5)
  const durations = [10, 20, 30, 30].map(() => {
    nowMs = (backoff.of('a', nowMs)?.untilMs ?? Number.NaN) + 1
    return failAt(nowMs)
  })
  assert.deepEqual(durations, [10, 20, 30, 30])
  assert.equal(failAt(nowMs + 180 * minute), 30)
  assert.equal(failAt(nowMs + 360 * minute + 1), 5)
})

test('CAS-33 a group is still backed off at the very instant at which the time ends', () => {
  const backoff = new GroupBackoff(settings)
  backoff.fail('a', failure, 0)
  assert.deepEqual(backoff.of('a', 5 * minute)?.message, 'no quota')
  assert.equal(backoff.of('a', 5 * minute + 1), undefined)
  assert.equal(backoff.of('b', 0), undefined)
})

/** How long the last of several failures is waited for, told from the list of all of them. */
function lastWaitMs(failures: readonly number[]): number {
  const index = failures.length - 1
  const at = failures[index] ?? 0
  const before = failures[index - 1]
  if (before === undefined || at - before > settings.backoffResetTimeoutMs) return settings.initialBackoffMs
  const previous = lastWaitMs(failures.slice(0, -1))
  return at - before > previous ? Math.min(2 * previous, settings.maxBackoffMs) : previous
}

test('CAS-33 the time of each failure follows from the list of all failures', () => {
  check(
    property(array(integer({ min: 0, max: 200 * minute }), { minLength: 1, maxLength: 12 }), (pauses) => {
      const backoff = new GroupBackoff(settings)
      const times: number[] = []
      for (const pauseMs of pauses) {
        times.push((times.at(-1) ?? 0) + pauseMs)
        const nowMs = times.at(-1) ?? 0
        backoff.fail('a', failure, nowMs)
        assert.equal(backoff.of('a', nowMs)?.untilMs, nowMs + lastWaitMs(times))
      }
    }),
  )
})
