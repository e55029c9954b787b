import type { Clock } from '@tenon/runtime'
import {
  ConditionSet,
  conditionOf,
  isConditionTrue,
  karpenterKinds,
  type NewCondition,
  type NodePool,
} from '@tenon/api'
import { done, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { patchStatus } from '../patch-status.ts'
import { isUnreadable } from '../state/readable.ts'
import { type Caches, indexes } from '../state/caches.ts'
import { registrationHealthy } from '../state/nodepools/registration-health.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { enqueuePoolsOfClasses, nodeClassOf } from '../state/nodepools/managed-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly clock: Clock
}

const awaiting: NewCondition = {
  type: registrationHealthy,
  status: 'Unknown',
  reason: 'AwaitingReconciliation',
  message: 'object is awaiting reconciliation',
}

/** `nodepool.registrationhealth`: keeps condition NodeRegistrationHealthy (lifecycle.md 3.6, cluster-state.md 17.3). */
export class NodePoolRegistrationHealth implements ControllerSpec {
  readonly name = 'nodepool.registrationhealth'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  readonly #startedMs: number

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#startedMs = deps.clock.now()
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    state.registrationHealth.samples.add(enqueue)
    enqueueChanged(caches.nodePools, enqueue)
    enqueuePoolsOfClasses(caches, enqueue)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { client, clock, state } = this.#deps
    const pool = state.managedPool(name)
    const nodeClass = pool && nodeClassOf(this.#deps.caches, pool)
    if (pool === undefined || nodeClass === undefined || isUnreadable(pool)) return done
    const nodeClassGeneration = nodeClass.metadata.generation ?? 0
    const isStale = isOutdated(pool, nodeClassGeneration)
    if (!isStale) this.#recordMissed(pool)
    const wanted = isStale ? awaiting : state.registrationHealth.verdictOn(pool)
    if (wanted === undefined) return done
    if (!isStale && wanted.status === conditionOf(pool, registrationHealthy)?.status) return done
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(wanted, clock.now())
    const status = { conditions, nodeClassObservedGeneration: nodeClassGeneration }
    const outcome = await patchStatus(client, karpenterKinds.nodePool, pool, status)
    if (outcome === 'conflict') return { kind: 'backoff' }
    if (isStale) state.registrationHealth.reset(pool)
    return done
  }

  /**
   * The process may have ended after the registration of a claim and before this condition was written. If the condition is
   * Unknown, claims that registered since then, and before this process began, count.
   */
  #recordMissed(pool: NodePool): void {
    const { caches, state } = this.#deps
    const condition = conditionOf(pool, registrationHealthy)
    if (condition?.status !== 'Unknown' || state.registrationHealth.verdictOn(pool) !== undefined) return
    const sinceMs = Date.parse(condition.lastTransitionTime)
    for (const claim of caches.nodeClaims.byIndex(indexes.byNodePool, pool.metadata.name)) {
      const atMs = Date.parse(conditionOf(claim, 'Registered')?.lastTransitionTime ?? '')
      const isMissed = isConditionTrue(claim, 'Registered') && atMs >= sinceMs && atMs <= this.#startedMs
      if (isMissed) state.registrationHealth.record(claim)
      if (state.registrationHealth.verdictOn(pool) !== undefined) return
    }
  }
}

/** Whether the condition is about an older version of the pool or its node class. */
function isOutdated(pool: NodePool, nodeClassGeneration: number): boolean {
  const condition = conditionOf(pool, registrationHealthy)
  return (
    condition === undefined ||
    pool.status?.nodeClassObservedGeneration !== nodeClassGeneration ||
    condition.observedGeneration !== (pool.metadata.generation ?? 0)
  )
}
