import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type NodeClaim, type NodePool } from '@tenon/api'
import { silentLogger } from '@tenon/runtime'
import { readyPool } from '../state/deciding.test-support.ts'
import { aClaim } from '../state/nodes/nodes.test-support.ts'
import { poolWishes } from '../state/nodepools/pool-annotations.ts'
import { ObservedCluster } from '../state/observed-cluster.test-support.ts'
import { nodeClaimExpiration } from './expiration.ts'

const expired: NodeClaim = (() => {
  const claim = aClaim('old', { providerID: 'old', metadata: { creationTimestamp: '2020-01-01T00:00:00Z' } })
  return { ...claim, spec: { ...claim.spec, expireAfter: '1h' } }
})()

const soft: NodePool = {
  ...readyPool,
  metadata: { ...readyPool.metadata, annotations: { 'tenon.sh/expiration': 'soft' } },
}

/** Names of the claims that are deleted. */
async function deleted(
  cached: NodePool | undefined,
  stored: NodePool | undefined,
): Promise<readonly string[]> {
  const cluster = new ObservedCluster()
  cluster.see(expired, ...(cached === undefined ? [] : [cached]))
  const names: string[] = []
  const controller = nodeClaimExpiration({
    caches: cluster.caches,
    state: { brake: cluster.state.brake, isManaged: () => true, poolWishes },
    clock: cluster.clock,
    provider: { wellKnownLabels: [] },
    logger: silentLogger,
    client: {
      get: (type) =>
        Promise.resolve((type.kind === karpenterKinds.nodePool.kind ? stored : undefined) as never),
    },
    deleter: {
      delete: ({ metadata }) => {
        names.push(metadata.name)
        return Promise.resolve(true)
      },
    },
  })
  await controller.reconcile('old', new AbortController().signal)
  return names
}

test('WNT-26 no node ends by force because the cache lacks its NodePool, or its annotation', async () => {
  assert.deepEqual(await deleted(undefined, soft), [])
  assert.deepEqual(await deleted(readyPool, soft), [])
  assert.deepEqual(await deleted(soft, readyPool), [])
})

test('a claim that is past its age ends by force if the API server says so, too', async () => {
  assert.deepEqual(await deleted(readyPool, readyPool), ['old'])
  assert.deepEqual(await deleted(undefined, undefined), ['old'])
})
