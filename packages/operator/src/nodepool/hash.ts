/** `nodepool.hash`: keeps the drift hash on pools, migrating claims of another version (api.md 9.1). */
import type { CloudProvider } from '@tenon/provider'
import {
  annotations,
  conditionOf,
  karpenterKinds,
  type NodeClaim,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
} from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Caches, indexes } from '../state/caches.ts'
import { isUnreadable } from '../state/readable.ts'
import { managedPool } from '../state/nodepools/managed-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
}

/** Reconciles the drift hash of one NodePool and its claims. */
export class NodePoolHash implements ControllerSpec {
  readonly name = 'nodepool.hash'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    enqueueChanged(this.#deps.caches.nodePools, enqueue)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const pool = managedPool(this.#deps, name)
    if (pool === undefined || isUnreadable(pool)) return done
    const hash = nodePoolHash(pool)
    const stored = pool.metadata.annotations ?? {}
    if (stored[annotations.nodePoolHashVersion] !== nodePoolHashVersion) await this.#migrate(pool, hash)
    const isCurrent =
      stored[annotations.nodePoolHash] === hash &&
      stored[annotations.nodePoolHashVersion] === nodePoolHashVersion
    if (!isCurrent) await this.#annotate(karpenterKinds.nodePool, name, hash)
    return done
  }

  async #migrate(pool: NodePool, hash: string): Promise<void> {
    const claims = this.#deps.caches.nodeClaims.byIndex(indexes.byNodePool, pool.metadata.name)
    for (const claim of claims) {
      if (claim.metadata.annotations?.[annotations.nodePoolHashVersion] === nodePoolHashVersion) continue
      await this.#annotate(karpenterKinds.nodeClaim, claim.metadata.name, keptHash(claim, hash))
    }
  }

  async #annotate(
    type: typeof karpenterKinds.nodePool | typeof karpenterKinds.nodeClaim,
    name: string,
    hash: string | undefined,
  ): Promise<void> {
    const values = {
      [annotations.nodePoolHashVersion]: nodePoolHashVersion,
      ...(hash !== undefined && { [annotations.nodePoolHash]: hash }),
    }
    try {
      await this.#deps.client.patch<NodePool | NodeClaim>(
        type,
        { name },
        { metadata: { annotations: values } },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}

/** A claim that has drifted already keeps its old hash, and so stays drifted. */
function keptHash(claim: NodeClaim, hash: string): string | undefined {
  return conditionOf(claim, 'Drifted') === undefined ? hash : undefined
}
