/** `nodepool.rollout`: says on a NodePool that its drifted nodes are not replaced for now (reports.md 5). */
import type { CloudProvider } from '@tenon/provider'
import { ConditionSet, conditionOf, karpenterKinds, type NewCondition, type NodePool } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { isUnreadable } from '../state/readable.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { nodeLimitRemedy } from './limit-report.ts'
import { managedPool } from '../state/nodepools/managed-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'rollouts'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly metrics: Pick<Metrics, 'rolloutsPaused'>
  readonly clock: Clock
}

const conditionType = 'RolloutHealthy'
const pausedReason = 'ReplacementDrifted'
/** Ends of a pause that lie closer together are the same one. */
const toleranceMs = 5000

/** Reconciles condition `RolloutHealthy` of one NodePool, which is there once a replacement was drifted itself, or a limit has no room for one. */
export class NodePoolRollout implements ControllerSpec {
  readonly name = 'nodepool.rollout'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  /** UIDs of NodePools whose condition was read once: it tells of pauses that an earlier process began. */
  readonly #restored = new Set<string>()
  /** When pauses end, by NodePool, as it was told; Unix milliseconds. */
  readonly #endsMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    state.rollouts.changes.add(enqueue)
    enqueueChanged(caches.nodePools, enqueue)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { metrics, state } = this.#deps
    const pool = managedPool(this.#deps, name)
    if (pool === undefined) {
      metrics.rolloutsPaused.remove({ nodepool: name })
      return done
    }
    if (isUnreadable(pool)) return done
    this.#restore(pool)
    const leftMs = state.rollouts.leftMs(name)
    metrics.rolloutsPaused.set({ nodepool: name }, leftMs > 0 ? 1 : 0)
    const limit = state.rollouts.limitOf(name)
    const wanted = leftMs > 0 ? this.#paused(name, leftMs) : limit === undefined ? healthy : limited(limit)
    const isStored = await this.#tell(pool, wanted)
    if (!isStored) return { kind: 'backoff' }
    const againMs = leftMs > 0 ? leftMs : (limit?.leftMs ?? 0)
    return againMs > 0 ? { kind: 'after', delayMs: againMs } : done
  }

  #restore(pool: NodePool): void {
    const { name, uid = name, generation } = pool.metadata
    if (this.#restored.has(uid)) return
    this.#restored.add(uid)
    const stored = conditionOf(pool, conditionType)
    if (stored?.reason !== pausedReason || stored.observedGeneration !== generation) return
    this.#deps.state.rollouts.restore(name, Date.parse(stored.lastTransitionTime))
  }

  /** @returns false when the NodePool has changed meanwhile. */
  async #tell(pool: NodePool, wanted: NewCondition): Promise<boolean> {
    const { client, clock } = this.#deps
    const { name } = pool.metadata
    const stored = conditionOf(pool, conditionType)
    if (wanted === healthy && (stored === undefined || stored.status === 'True')) return true
    if (wanted.status === stored?.status && wanted.message === stored.message) return true
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(wanted, clock.now())
    try {
      await client.patch(
        karpenterKinds.nodePool,
        { name },
        { status: { conditions } },
        { subresource: 'status', resourceVersion: pool.metadata.resourceVersion ?? '' },
      )
      return true
    } catch (error) {
      if (isKubeError(error, 'conflict')) return false
      if (!isKubeError(error, 'notFound')) throw error
      return true
    }
  }

  #paused(name: string, leftMs: number): NewCondition {
    const told = this.#endsMs.get(name) ?? 0
    const now = this.#deps.clock.now() + leftMs
    const endMs = Math.abs(now - told) < toleranceMs ? told : now
    this.#endsMs.set(name, endMs)
    return {
      type: conditionType,
      status: 'False',
      reason: pausedReason,
      message: `The replacement of a drifted node was drifted itself; drifted nodes are replaced again from ${rfc3339(endMs)}, one at a time, or once the NodePool or its node class changes. Condition Drifted of the newest NodeClaims says why`,
    }
  }
}

const healthy: NewCondition = { type: conditionType, status: 'True' }

function limited({ because }: { readonly because: string }): NewCondition {
  return {
    type: conditionType,
    status: 'False',
    reason: 'LimitReached',
    message: `Drifted nodes are not replaced, as each stays until its successor is there: ${because}; ${nodeLimitRemedy}`,
  }
}
