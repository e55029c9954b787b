/** `nodepool.registrationhealth`: keeps condition NodeRegistrationHealthy (lifecycle.md 3.6, cluster-state.md 17.3). */
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import {
  ConditionSet,
  conditionOf,
  isConditionTrue,
  karpenterKinds,
  type NewCondition,
  type NodePool,
} from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { isUnreadable } from '../state/readable.ts'
import { type Caches, indexes } from '../state/caches.ts'
import { registrationHealthy } from '../state/nodepools/registration-health.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { enqueuePoolsOfClasses, managedPool, nodeClassOf } from '../state/nodepools/managed-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodeClasses' | 'nodePools'>
  readonly state: Pick<ClusterState, 'registrationHealth'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly clock: Clock
}

const awaiting: NewCondition = {
  type: registrationHealthy,
  status: 'Unknown',
  reason: 'AwaitingReconciliation',
  message: 'object is awaiting reconciliation',
}

/** Reconciles the registration health of one NodePool. */
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
    const pool = managedPool(this.#deps, name)
    const nodeClass = pool && nodeClassOf(this.#deps.caches, pool)
    if (pool === undefined || nodeClass === undefined || isUnreadable(pool)) return done
    const nodeClassGeneration = nodeClass.metadata.generation ?? 0
    const isStale = isOutdated(pool, nodeClassGeneration)
    if (!isStale) this.#recordUntold(pool)
    const wanted = isStale ? awaiting : state.registrationHealth.verdictOn(pool)
    if (wanted === undefined) return done
    if (!isStale && wanted.status === conditionOf(pool, registrationHealthy)?.status) return done
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(wanted, clock.now())
    try {
      await client.patch(
        karpenterKinds.nodePool,
        { name },
        { status: { conditions, nodeClassObservedGeneration: nodeClassGeneration } },
        { subresource: 'status', resourceVersion: pool.metadata.resourceVersion ?? '' },
      )
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (!isKubeError(error, 'notFound')) throw error
    }
    if (isStale) state.registrationHealth.reset(pool)
    return done
  }

  /**
   * A process may have died between a claim's registration and what the pool was to be told of it:
   * while the pool knows nothing, a claim that registered since it began to know nothing speaks for it.
   */
  #recordUntold(pool: NodePool): void {
    const { caches, state } = this.#deps
    const condition = conditionOf(pool, registrationHealthy)
    if (condition?.status !== 'Unknown' || state.registrationHealth.verdictOn(pool) !== undefined) return
    const sinceMs = Date.parse(condition.lastTransitionTime)
    for (const claim of caches.nodeClaims.byIndex(indexes.byNodePool, pool.metadata.name)) {
      const atMs = Date.parse(conditionOf(claim, 'Registered')?.lastTransitionTime ?? '')
      const isUntold = isConditionTrue(claim, 'Registered') && atMs >= sinceMs && atMs <= this.#startedMs
      if (isUntold) state.registrationHealth.record(claim)
      if (state.registrationHealth.verdictOn(pool) !== undefined) return
    }
  }
}

/** Whether what is known was learnt with another pool specification or node class. */
function isOutdated(pool: NodePool, nodeClassGeneration: number): boolean {
  const condition = conditionOf(pool, registrationHealthy)
  return (
    condition === undefined ||
    pool.status?.nodeClassObservedGeneration !== nodeClassGeneration ||
    condition.observedGeneration !== (pool.metadata.generation ?? 0)
  )
}
