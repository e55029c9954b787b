import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NodePool, nodePoolHash } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { nodeClaimFor } from './claim-objects.ts'

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default', uid: 'pool-uid' },
  spec: {
    template: {
      metadata: { annotations: { note: 'x' } },
      spec: {
        nodeClassRef: { group: 'g', kind: 'K', name: 'n' },
        requirements: [],
        expireAfter: '720h',
        terminationGracePeriod: '48h',
        taints: [{ key: 'a', effect: 'NoSchedule' }],
      },
    },
  },
}
const planned: NewClaim = {
  nodePool: 'default',
  labels: { 'karpenter.sh/nodepool': 'default' },
  taints: [
    { key: 'a', effect: 'NoSchedule' },
    { key: 'of-the-class', effect: 'NoExecute' },
  ],
  requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
  requests: { cpu: 1500, pods: 2 },
  minValuesRelaxed: false,
  overlaid: { price: false, capacity: false },
  pool,
  instanceTypes: [],
  largest: {},
  pricePerHour: undefined,
  reservationIds: [],
  deviceDrivers: [],
  pods: [],
}

/** The plan for a pool whose template says something else. */
function plannedFor(template: Partial<NodePool['spec']['template']['spec']>): NewClaim {
  const spec = { ...pool.spec.template.spec, ...template }
  return { ...planned, pool: { ...pool, spec: { template: { ...pool.spec.template, spec } } } }
}

test('a NodeClaim is named after its pool, owned by it, and carries no finalizer', () => {
  const { metadata, spec } = nodeClaimFor(planned)
  assert.deepEqual(metadata, {
    generateName: 'default-',
    labels: { 'karpenter.sh/nodepool': 'default' },
    annotations: {
      note: 'x',
      'karpenter.sh/nodepool-hash': nodePoolHash(pool),
      'karpenter.sh/nodepool-hash-version': 'v3',
      'karpenter.sh/nodeclaim-min-values-relaxed': 'false',
    },
    ownerReferences: [
      {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodePool',
        name: 'default',
        uid: 'pool-uid',
        blockOwnerDeletion: true,
      },
    ],
  })
  assert.equal(spec.terminationGracePeriod, '48h0m0s')
  assert.equal(spec.expireAfter, '720h')
  assert.deepEqual(spec.resources, { requests: { cpu: '1500m', pods: '2' } })
  assert.deepEqual([spec.taints, spec.startupTaints], [planned.taints, undefined])
})

test('SCH-140 the grace period of the provider stands in where the pool has none', () => {
  const { terminationGracePeriod: _, ...without } = pool.spec.template.spec
  const unset: NewClaim = {
    ...planned,
    pool: { ...pool, spec: { template: { ...pool.spec.template, spec: without } } },
  }
  const gracePeriod = (claim: NewClaim, ms?: number) => nodeClaimFor(claim, ms).spec.terminationGracePeriod
  assert.equal(gracePeriod(unset), undefined)
  assert.equal(gracePeriod(unset, 3_600_000), '1h0m0s')
  assert.equal(gracePeriod(plannedFor({ terminationGracePeriod: '30m' }), 3_600_000), '30m0s')
})

test('what an overlay has changed is noted on the claim', () => {
  const noted = (overlaid: NewClaim['overlaid']) => {
    const { annotations = {} } = nodeClaimFor({ ...planned, overlaid }).metadata
    return ['price', 'capacity'].map((kind) => annotations[`karpenter.sh/${kind}-overlay-applied`])
  }
  assert.deepEqual(noted({ price: true, capacity: false }), ['true', undefined])
  assert.deepEqual(noted({ price: false, capacity: true }), [undefined, 'true'])
})

test('a claim whose minValues were lowered says so', () => {
  const { annotations } = nodeClaimFor({ ...planned, minValuesRelaxed: true }).metadata
  assert.equal(annotations?.['karpenter.sh/nodeclaim-min-values-relaxed'], 'true')
})
