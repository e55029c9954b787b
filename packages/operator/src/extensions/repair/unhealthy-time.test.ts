import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, NodeClaim } from '@tenon/api'
import type { RepairPolicy } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import {
  ailmentOf,
  endedStretches,
  isFlapping,
  joinedStretches,
  stretchesOf,
  stretchesText,
  unhealthyTimeAnnotation,
} from './unhealthy-time.ts'

const minute = 60_000
const now = Date.parse('2026-01-01T12:00:00Z')
const policy: RepairPolicy = {
  conditionType: 'MemoryPressure',
  conditionStatus: 'True',
  tolerationMs: 10 * minute,
}
const key = 'MemoryPressure=True'

function node(status: 'True' | 'False', sinceMs: number): Node {
  const condition = { type: 'MemoryPressure', status, lastTransitionTime: rfc3339(sinceMs) }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { conditions: [condition] } }
}

function claim(annotations: Readonly<Record<string, string>>): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'c', annotations },
    spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
  }
}

const remembering = (...stretches: readonly (readonly [fromMs: number, toMs: number])[]) =>
  claim({
    [unhealthyTimeAnnotation]: stretchesText(
      new Map([[key, stretches.map(([fromMs, toMs]) => ({ fromMs, toMs }))]]),
    ),
  })

test('WNT-14 unhealthy time of the last hour is taken off the toleration, and no other', () => {
  const bad = node('True', now - minute)
  const dueIn = (of: NodeClaim | undefined) =>
    ((ailmentOf(bad, of, [policy], now)?.repairAtMs ?? Number.NaN) - now) / minute
  assert.equal(dueIn(undefined), 9)
  assert.equal(dueIn(remembering([now - 20 * minute, now - 16 * minute])), 5)
  assert.equal(dueIn(remembering([now - 90 * minute, now - 58 * minute])), 7)
  assert.equal(dueIn(remembering([now - 30 * minute, now - 5 * minute])), -16)
})

test('WNT-16 what was before a reboot does not count', () => {
  const rebooted = claim({
    ...remembering([now - 20 * minute, now - 16 * minute]).metadata.annotations,
    'tenon.sh/rebooted-at': rfc3339(now - 3 * minute),
  })
  const ailment = ailmentOf(node('True', now - 14 * minute), rebooted, [policy], now)
  assert.equal(ailment?.repairAtMs, now + 7 * minute)
})

test('a stretch ends with the change to another status, as long as both times make sense', () => {
  const clock = { now: () => now }
  const ended = (fromMs: number, toMs: number) =>
    endedStretches(node('True', fromMs), node('False', toMs), [policy], clock).get(key)
  assert.deepEqual(ended(now - 2 * minute, now - minute), [{ fromMs: now - 2 * minute, toMs: now - minute }])
  assert.deepEqual(ended(now - minute, now + 60 * minute), [{ fromMs: now - minute, toMs: now }])
  assert.equal(ended(now + minute, now), undefined)
  const still = endedStretches(node('True', now - minute), node('True', now), [policy], clock)
  assert.equal(still.size, 0)
})

test('WNT-14 thousands of stretches stay a short text with the same sum', () => {
  let all = stretchesOf(claim({}))
  for (let at = now - 50 * minute; at < now; at += 6000)
    all = joinedStretches(all, new Map([[key, [{ fromMs: at, toMs: at + 3000 }]]]), now)
  const [...stretches] = all.get(key) ?? []
  assert.equal(stretches.length, 64)
  assert.equal(
    stretches.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0),
    25 * minute,
  )
  assert.ok(stretchesText(all).length < 2000)
  assert.deepEqual(stretchesOf(claim({ [unhealthyTimeAnnotation]: stretchesText(all) })), all)
})

test('WNT-14 a node flaps as long as it was bad several times and good for less than five minutes', () => {
  const twice = (lastMs: number) =>
    remembering([now - 30 * minute, now - 20 * minute], [lastMs - 2 * minute, lastMs])
  assert.ok(isFlapping(twice(now - 4 * minute), [policy], now))
  assert.ok(!isFlapping(twice(now - 5 * minute), [policy], now))
  assert.ok(!isFlapping(remembering([now - 20 * minute, now - minute]), [policy], now), 'only once')
})

test('WNT-42 hostile values of the annotations count as absent', () => {
  const hostile = [
    '',
    'x'.repeat(30_000),
    '__proto__',
    'NaN',
    '-1',
    '1e309',
    `${key} 5-1`,
    `${key} a-b;;`,
    '9'.repeat(400),
  ]
  for (const value of hostile) {
    assert.equal(stretchesOf(claim({ [unhealthyTimeAnnotation]: value })).get(key), undefined)
    const odd = claim({ 'tenon.sh/rebooted-at': value, [unhealthyTimeAnnotation]: value })
    assert.equal(
      ailmentOf(node('True', now), odd, [policy], now)?.repairAtMs,
      now + 10 * minute,
      value.slice(0, 20),
    )
  }
  const ahead = claim({ 'tenon.sh/rebooted-at': '2099-01-01T00:00:00Z' })
  assert.equal(ailmentOf(node('True', now), ahead, [policy], now)?.repairAtMs, now + 10 * minute)
})
