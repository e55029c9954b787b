import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OfferingHealth } from './offering-health.ts'

const small = { instanceType: 'small', zone: 'zone-1', capacityType: 'spot' }
const minute = 60_000

test('an offering nothing is known about may be used by any number of launches', () => {
  const health = new OfferingHealth()
  assert.deepEqual([health.begin(small, 0), health.begin(small, 0)], [true, true])
  assert.deepEqual(health.troubles(0), [])
})

test('a refused offering is left alone for three minutes, then for one launch', () => {
  const health = new OfferingHealth()
  health.refused(small, 0)
  assert.equal(health.isUsable(small, 3 * minute - 1), false)
  assert.equal(health.isUsable({ ...small, zone: 'zone-2' }, 0), true)
  assert.equal(health.isUsable({ ...small, capacityType: 'on-demand' }, 0), true)
  assert.equal(health.begin(small, 3 * minute), true)
  assert.deepEqual([health.isUsable(small, 3 * minute), health.begin(small, 3 * minute)], [false, false])
  health.succeeded(small, 3 * minute)
  assert.deepEqual([health.begin(small, 3 * minute), health.begin(small, 3 * minute)], [true, true])
})

test('the pause doubles with every failed try, up to half an hour', () => {
  const health = new OfferingHealth()
  const pauses: number[] = []
  let nowMs = 0
  for (let i = 0; i < 6; i++) {
    assert.equal(health.begin(small, nowMs), true)
    health.refused(small, nowMs)
    const [trouble] = health.troubles(nowMs)
    pauses.push(((trouble?.untilMs ?? 0) - nowMs) / minute)
    nowMs = trouble?.untilMs ?? 0
  }
  assert.deepEqual(pauses, [3, 6, 12, 24, 30, 30])
})

test('launches that fail together are one failure', () => {
  const health = new OfferingHealth()
  for (const nowMs of [0, 1, 2000]) health.refused(small, nowMs, 'sold out')
  assert.deepEqual(health.troubles(2000), [
    { ...small, failures: 1, because: 'sold out', phase: 'waiting', untilMs: 3 * minute },
  ])
})

test('a try that ends without telling anything leaves the next launch to try', () => {
  const health = new OfferingHealth()
  health.refused(small, 0)
  assert.equal(health.begin(small, 3 * minute), true)
  assert.equal(health.troubles(3 * minute)[0]?.phase, 'probed')
  health.ended(small)
  assert.equal(health.troubles(3 * minute)[0]?.phase, 'due')
  assert.equal(health.begin(small, 3 * minute), true)
})

test('a failure of hours ago is forgotten', () => {
  const health = new OfferingHealth()
  health.refused(small, 0)
  health.refused(small, 3 * minute)
  health.sweep(4 * minute)
  assert.equal(health.troubles(4 * minute)[0]?.failures, 2)
  health.sweep(3 * 60 * minute)
  assert.deepEqual(health.troubles(3 * 60 * minute), [])
  assert.equal(health.isTrusted(small), true)
})

test('a cloud that says how long it refuses is believed: the pause does not grow', () => {
  const health = new OfferingHealth()
  let nowMs = 0
  for (let i = 0; i < 4; i++) {
    assert.equal(health.begin(small, nowMs), true)
    health.refused({ ...small, pauseMs: minute }, nowMs, 'no quota')
    assert.deepEqual(health.unavailability(small, nowMs), { because: 'no quota', untilMs: nowMs + minute })
    assert.equal(health.isUsable(small, nowMs + minute - 1), false)
    nowMs += minute
  }
})

test('capacity that is given back ends the pauses that wait for it, and no others', () => {
  const health = new OfferingHealth()
  const large = { ...small, instanceType: 'large' }
  const odd = { ...small, instanceType: 'odd' }
  const unlucky = { ...small, instanceType: 'unlucky' }
  health.refused({ ...small, pauseMs: minute, endsOnRelease: true }, 0)
  health.refused({ ...large, pauseMs: 5 * minute }, 0)
  health.refused({ ...odd, pauseMs: 5 * minute }, 0)
  health.refused({ ...odd, pauseMs: 6 * minute, endsOnRelease: true }, 0)
  health.refused(unlucky, 0)
  health.released(1000)
  assert.equal(health.isTrusted(small), true)
  assert.equal(health.unavailability(large, 1000)?.untilMs, 5 * minute)
  assert.equal(health.unavailability(odd, 1000)?.untilMs, 5 * minute)
  assert.equal(health.isUsable(unlucky, 1000), false)
})

test('a launch that was under way does not end the pause that the cloud has told since', () => {
  const health = new OfferingHealth()
  health.refused({ ...small, pauseMs: 5 * minute }, 0)
  health.succeeded(small, 1000)
  assert.equal(health.isUsable(small, 5 * minute - 1), false)
  assert.equal(health.begin(small, 5 * minute), true)
  health.succeeded(small, 5 * minute + 1000)
  assert.equal(health.isTrusted(small), true)
})
