import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NodePool, nodePoolHash } from '@tenon/api'
import { nodeClaimFor } from './create-claim.ts'

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
const planned = {
  nodePool: 'default',
  labels: { 'karpenter.sh/nodepool': 'default' },
  requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
  requests: { cpu: 1500, pods: 2 },
  minValuesRelaxed: false,
} as unknown as Parameters<typeof nodeClaimFor>[0]

test('a NodeClaim is named after its pool, owned by it, and carries no finalizer', () => {
  const { metadata, spec } = nodeClaimFor(planned, pool)
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
  assert.deepEqual([spec.taints, spec.startupTaints], [pool.spec.template.spec.taints, undefined])
})
