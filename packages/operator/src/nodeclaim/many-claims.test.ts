/** What controllers remember of claims is cleared away as they go; that must not cost all claims for each of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels, type NodeClaim, type NodePool } from '@tenon/api'
import { rfc3339, silentLogger, VirtualClock } from '@tenon/runtime'
import { nodeClassKind, ObservedCluster } from '../state/observed-cluster.test-support.ts'
import { NodeClaimConsistency } from './consistency.ts'
import { InstanceTypeDrift } from './disruption-conditions.ts'

function aClaim(index: number): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name: `c-${index}`,
      uid: `c-${index}`,
      creationTimestamp: rfc3339(0),
      labels: { [labels.instanceType]: 't' },
    },
    spec: {
      nodeClassRef: { group: nodeClassKind.group, kind: nodeClassKind.kind, name: 'x' },
      requirements: [],
    },
    status: { providerID: `p://${index}` },
  }
}

/** Processor time for each of the claims, in microseconds. */
async function eachTakes(count: number, work: (claim: NodeClaim) => Promise<unknown>): Promise<number> {
  const claims = Array.from({ length: count }, (_, index) => aClaim(index))
  const startedAt = process.cpuUsage()
  for (const claim of claims) await work(claim)
  const { user, system } = process.cpuUsage(startedAt)
  return (user + system) / count
}

async function assertLinear(fresh: () => (claim: NodeClaim) => Promise<unknown>): Promise<void> {
  await eachTakes(2000, fresh())
  const few = await eachTakes(2000, fresh())
  const many = await eachTakes(30_000, fresh())
  assert.ok(
    many < 2.5 * few + 20,
    `${few.toFixed(1)} µs each of 2,000 claims, ${many.toFixed(1)} µs each of 30,000`,
  )
}

test('the look at instance types costs the same for each claim, however many there are', async () => {
  const types: readonly InstanceType[] = [
    {
      name: 't',
      requirements: [],
      offerings: [{ requirements: [], pricePerHour: 1, available: true }],
      capacity: {},
      overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
    },
  ]
  const provider = { getInstanceTypes: () => Promise.resolve(types), wellKnownLabels: [] }
  await assertLinear(() => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1))
    const drift = new InstanceTypeDrift(provider, clock)
    return async (claim) => {
      const reason = await drift.reasonFor(claim, {} as NodePool, new AbortController().signal)
      assert.equal(reason, undefined)
    }
  })
})

test('so does the look at what claims were promised', async () => {
  await assertLinear(() => {
    const cluster = new ObservedCluster()
    const { caches, clock, state } = cluster
    const client = { patch: () => assert.fail('nothing is to be written') }
    const events = { record: () => assert.fail('there is nothing to tell') }
    const consistency = new NodeClaimConsistency({
      client,
      caches,
      state,
      events,
      clock,
      logger: silentLogger,
    })
    return async (claim) => {
      cluster.see(claim)
      assert.equal((await consistency.reconcile(claim.metadata.name)).kind, 'done')
    }
  })
})
