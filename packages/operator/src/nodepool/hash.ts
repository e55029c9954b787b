import {
  annotations,
  conditionOf,
  karpenterKinds,
  type NodeClaim,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
} from '@tenon/api'
import { done, isKubeError, type KubeClient } from '@tenon/kube'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { isUnreadable } from '../state/readable.ts'

/** `nodepool.hash`: keeps the drift hash on pools, and updates claims that have one of another version (api.md 9.1). */
export function nodePoolHashes(client: KubeClient, caches: Caches, state: ClusterState): ControllerSpec {
  return {
    name: 'nodepool.hash',
    concurrency: { least: 10, most: 1000 },
    watch(enqueue) {
      enqueueChanged(caches.nodePools, enqueue)
    },
    async reconcile(name) {
      const pool = state.managedPool(name)
      if (pool === undefined || isUnreadable(pool)) return done
      const hash = nodePoolHash(pool)
      const stored = pool.metadata.annotations ?? {}
      if (stored[annotations.nodePoolHashVersion] !== nodePoolHashVersion)
        await updateClaims(client, caches.nodeClaims.byIndex(indexes.byNodePool, name), hash)
      const isCurrent =
        stored[annotations.nodePoolHash] === hash &&
        stored[annotations.nodePoolHashVersion] === nodePoolHashVersion
      if (!isCurrent) await annotate(client, karpenterKinds.nodePool, name, hash)
      return done
    },
  }
}

async function updateClaims(client: KubeClient, claims: readonly NodeClaim[], hash: string): Promise<void> {
  for (const claim of claims) {
    if (claim.metadata.annotations?.[annotations.nodePoolHashVersion] === nodePoolHashVersion) continue
    // A claim that has drifted keeps its old hash, and so stays drifted.
    const newHash = conditionOf(claim, 'Drifted') === undefined ? hash : undefined
    await annotate(client, karpenterKinds.nodeClaim, claim.metadata.name, newHash)
  }
}

async function annotate(
  client: KubeClient,
  type: typeof karpenterKinds.nodePool | typeof karpenterKinds.nodeClaim,
  name: string,
  hash: string | undefined,
): Promise<void> {
  const values = {
    [annotations.nodePoolHashVersion]: nodePoolHashVersion,
    ...(hash !== undefined && { [annotations.nodePoolHash]: hash }),
  }
  try {
    await client.patch<NodePool | NodeClaim>(type, { name }, { metadata: { annotations: values } })
  } catch (error) {
    if (!isKubeError(error, 'notFound')) throw error
  }
}
