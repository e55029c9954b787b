import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim } from '@tenon/api'
import { expiryOf } from './expiry.ts'

const hour = 3_600_000
const bornMs = Date.parse('2026-01-01T00:00:00Z')

function claim(name: string, expireAfter: string): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [], expireAfter },
  }
}

test('WNT-27 with a jitter of 10 %, claims of one birthday expire between 90 and 100 % of their age, evenly', () => {
  const ages = Array.from({ length: 1000 }, (_, i) => {
    const expiry = expiryOf(claim(`pool-${i.toString(36)}`, '100h'), { expirationJitter: 0.1 })
    assert.equal(expiry.forcedMs, expiry.atMs)
    return (expiry.atMs - bornMs) / hour
  })
  assert.ok(ages.every((age) => age >= 90 && age <= 100))
  for (let from = 90; from < 100; from++) {
    const within = ages.filter((age) => age >= from && age < from + 1).length
    assert.ok(within > 60 && within < 140, `${within} of 1000 expire within the hour from ${from}`)
  }
  const again = expiryOf(claim('pool-0', '100h'), { expirationJitter: 0.1 })
  assert.equal((again.atMs - bornMs) / hour, ages[0], 'the same after a restart')
})

test('WNT-26 a soft expiration has no forced end, or one after the deadline', () => {
  const one = claim('a', '10h')
  assert.deepEqual(expiryOf(one, {}), { atMs: bornMs + 10 * hour, forcedMs: bornMs + 10 * hour })
  assert.equal(expiryOf(one, { expiration: 'soft' }).forcedMs, Number.POSITIVE_INFINITY)
  const limited = expiryOf(one, { expiration: 'soft', expirationDeadline: hour })
  assert.deepEqual(limited, { atMs: bornMs + 10 * hour, forcedMs: bornMs + 11 * hour })
  const never = expiryOf(claim('a', 'Never'), {
    expiration: 'soft',
    expirationDeadline: 0,
    expirationJitter: 1,
  })
  assert.deepEqual(never, { atMs: Number.POSITIVE_INFINITY, forcedMs: Number.POSITIVE_INFINITY })
})
