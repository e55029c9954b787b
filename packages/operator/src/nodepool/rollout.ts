import { ConditionSet, conditionOf, karpenterKinds, type NewCondition, type NodePool } from '@tenon/api'
import { done, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { patchStatus } from '../patch-status.ts'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { isUnreadable } from '../state/readable.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { nodeLimitRemedy } from './limit-report.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly metrics: Metrics
  readonly clock: Clock
}

const conditionType = 'RolloutHealthy'
const pausedReason = 'ReplacementDrifted'
/** Computed ends of the same pause differ by less. */
const toleranceMs = 5000

/**
 * `nodepool.rollout`: keeps condition RolloutHealthy, which says why drifted nodes are not replaced for now: a replacement was
 * drifted itself, or a limit allows none (reports.md 5).
 */
export class NodePoolRollout implements ControllerSpec {
  readonly name = 'nodepool.rollout'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  /** UIDs of NodePools whose condition was read, which stores pauses across restarts. */
  readonly #restored = new Set<string>()
  /** When pauses end, by NodePool, as written in the condition; Unix milliseconds. */
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
    const pool = state.managedPool(name)
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
    if ((await this.#store(pool, wanted)) === 'conflict') return { kind: 'backoff' }
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

  async #store(pool: NodePool, wanted: NewCondition): Promise<'unchanged' | 'written' | 'conflict' | 'gone'> {
    const { client, clock } = this.#deps
    const stored = conditionOf(pool, conditionType)
    if (wanted === healthy && (stored === undefined || stored.status === 'True')) return 'unchanged'
    if (wanted.status === stored?.status && wanted.message === stored.message) return 'unchanged'
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(wanted, clock.now())
    return await patchStatus(client, karpenterKinds.nodePool, pool, { conditions })
  }

  #paused(name: string, leftMs: number): NewCondition {
    const written = this.#endsMs.get(name) ?? 0
    const computed = this.#deps.clock.now() + leftMs
    const endMs = Math.abs(computed - written) < toleranceMs ? written : computed
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
