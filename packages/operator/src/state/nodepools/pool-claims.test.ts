import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim } from '@tenon/api'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

function aClaim(
  name: string,
  pool: string | undefined = 'fixed',
  status: NodeClaim['status'] = {},
): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, uid: name, labels: pool === undefined ? {} : { 'karpenter.sh/nodepool': pool } },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      requirements: [],
    },
    status,
  }
}

const launched = (name: string) => aClaim(name, 'fixed', { providerID: `fake://${name}` })
const deleting = (claim: NodeClaim): NodeClaim => ({
  ...claim,
  metadata: { ...claim.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
})
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

/** A cluster with its ledger; `counts` as active, deleting, pending disruption. */
function aLedger(...claims: readonly NodeClaim[]) {
  const cluster = new ObservedCluster()
  cluster.see(...claims)
  const { state } = cluster
  const counts = (pool = 'fixed') => {
    const { active, deleting: going, pendingDisruption } = state.poolClaims.of(pool)
    return [active.length, going.length, pendingDisruption.length]
  }
  return { cluster, state, ledger: state.poolClaims, counts }
}

test('STA-55 STA-56 a claim counts before it has an instance, and only in the pool of its label', () => {
  const { cluster, counts } = aLedger(aClaim('a'))
  assert.deepEqual(counts(), [1, 0, 0])
  const { labels: _, ...unlabelled } = aClaim('b').metadata
  cluster.see({ ...aClaim('b'), metadata: unlabelled })
  assert.deepEqual(
    [counts(), counts('')],
    [
      [1, 0, 0],
      [0, 0, 0],
    ],
  )
})

test('STA-57 claims chosen by the disruption loop are counted apart until it takes that back', () => {
  const chosen = { type: 'DisruptionReason', reason: 'Drifted', message: '', lastTransitionTime: '' }
  const marked = (status: 'True' | 'False'): NodeClaim => ({
    ...launched('a'),
    status: { providerID: 'fake://a', conditions: [{ ...chosen, status }] },
  })
  const { cluster, ledger, state, counts } = aLedger(launched('a'), launched('b'))
  ledger.markPendingDisruption('a')
  ledger.markPendingDisruption('b')
  assert.deepEqual(counts(), [0, 0, 2])
  // The condition itself comes as an update, which tells nothing new.
  cluster.see(marked('True'))
  assert.deepEqual(counts(), [0, 0, 2])
  state.mark('fake://b')
  assert.deepEqual(counts(), [0, 1, 1])
  state.unmark('fake://b')
  cluster.see(marked('False'))
  assert.deepEqual(counts(), [2, 0, 0])
})

test('STA-58 STA-59 room is given once, comes back once, and never grows beyond the limit', () => {
  const { ledger } = aLedger(aClaim('x'), aClaim('y'), aClaim('z'))
  const first = ledger.reserve('fixed', 10, names('a', 10))
  assert.equal(first.length, 7)
  assert.equal(ledger.reserve('fixed', 10, names('b', 1)).length, 0)
  ledger.release(...first)
  ledger.release(...first, 'never-held')
  assert.equal(ledger.reserve('fixed', 10, names('c', 10)).length, 7)
  assert.equal(ledger.reserve('other', 4, names('d', 10)).length, 4)
})

test('STA-60 a hundred reservations at once stay within the limit', async () => {
  const { ledger } = aLedger(aClaim('x'))
  const granted = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      await Promise.resolve()
      return ledger.reserve('fixed', 40, names(`r${i}`, 1 + (i % 3))).length
    }),
  )
  assert.equal(
    granted.reduce((sum, count) => sum + count, 0),
    39,
  )
})

test('STA-122 a claim that launches while its sibling is being created costs the sibling nothing', () => {
  const { cluster, ledger, state, counts } = aLedger()
  assert.deepEqual(ledger.reserve('fixed', 2, ['a', 'b']), ['a', 'b'])
  state.seed(aClaim('a'))
  ledger.release('a')
  cluster.see(aClaim('a'))
  cluster.see(launched('a'))
  assert.deepEqual(counts(), [1, 0, 0])
  assert.deepEqual(ledger.reserve('fixed', 2, ['c']), [])
  state.seed(aClaim('b'))
  ledger.release('b')
  assert.deepEqual([counts(), ledger.occupied('fixed')], [[2, 0, 0], 2])
})

test('a claim that a watch shows before its creation is answered takes the room it was given', () => {
  const { cluster, ledger } = aLedger()
  ledger.reserve('fixed', 3, ['a'])
  ledger.leaveUnsettled('a', 5)
  assert.deepEqual([ledger.unsettled('fixed'), ledger.unsettled('fixed', 5)], [['a'], []])
  cluster.see(aClaim('a'))
  assert.deepEqual([ledger.unsettled('fixed'), ledger.occupied('fixed')], [[], 1])
})

test('STA-130 a claim whose label changes counts in its new pool only', () => {
  const { cluster, counts } = aLedger(launched('a'))
  cluster.see({ ...launched('a'), metadata: aClaim('a', 'other').metadata })
  assert.deepEqual(
    [counts(), counts('other')],
    [
      [0, 0, 0],
      [1, 0, 0],
    ],
  )
})

test('a deletion that was accepted counts at once, and one of a claim that is gone leaves no trace', () => {
  const { cluster, ledger, counts } = aLedger(aClaim('a'), aClaim('b'))
  ledger.markDeleting('a')
  assert.deepEqual(counts(), [1, 1, 0])
  cluster.see(deleting(aClaim('a')))
  cluster.miss(deleting(aClaim('a')))
  ledger.markDeleting('a')
  cluster.see(aClaim('a'))
  assert.deepEqual(counts(), [2, 0, 0])
})

test('claims of node classes that are served elsewhere do not count', () => {
  const foreign = aClaim('a')
  const { counts } = aLedger({
    ...foreign,
    spec: { ...foreign.spec, nodeClassRef: { group: 'other.io', kind: 'Other', name: 'x' } },
  })
  assert.deepEqual(counts(), [0, 0, 0])
})
