/** Remembers what was decided about each pending pod. */
import { isConditionTrue, type NodePool, type Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'podDecisions' | 'pods'>
  readonly metrics: Pick<Metrics, 'schedulingDecisionDuration'>
  readonly clock: Pick<Clock, 'now'>
}

export class DecisionMemory {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Notes that a decision has placed a pod. Pods of deleted nodes are bound, so they are skipped. */
  placed(pod: Pod, pool: NodePool | undefined, nodeClaim: string | undefined): void {
    if (!this.#isWaiting(pod)) return
    const { state, clock } = this.#deps
    const isPoolHealthy = pool !== undefined && isConditionTrue(pool, 'NodeRegistrationHealthy')
    const place = { nodeClaim, isPoolHealthy }
    this.#observe(state.podDecisions.placed(pod.metadata.uid ?? '', place, clock.now()))
  }

  /** Notes that a pod has no place. */
  failed(pod: Pod, reason: string): void {
    if (!this.#isWaiting(pod)) return
    const { state, clock } = this.#deps
    this.#observe(state.podDecisions.failed(pod.metadata.uid ?? '', reason, clock.now()))
  }

  /** A pod that ended or started during the decision is forgotten already. */
  #isWaiting(pod: Pod): boolean {
    const { name, namespace, uid } = pod.metadata
    const key = namespace === undefined ? { name } : { name, namespace }
    const { caches, state } = this.#deps
    const current = caches.pods.get(key)
    if (current === undefined || current.metadata.uid !== uid) return false
    return isUnbound(pod) && !state.pods.isSettled(current)
  }

  #observe(waitedMs: number | undefined): void {
    if (waitedMs !== undefined) this.#deps.metrics.schedulingDecisionDuration.observe(waitedMs / 1000)
  }
}

/** Pods of deleted nodes are still bound. */
export function isUnbound(pod: Pod): boolean {
  const spec = pod.spec as Partial<Pod['spec']> | null | undefined
  return (spec?.nodeName ?? '') === ''
}
