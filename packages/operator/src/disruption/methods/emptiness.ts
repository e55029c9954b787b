/** `disruption`, method Emptiness: removes nodes that hold no pod (disruption.md 8, 13). */
import type { Clock, Logger } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import { savingsOrder } from '@tenon/engine'
import { remainingDisruptions } from '../budget.ts'
import { type Candidate, isEmpty } from '../candidates.ts'
import { consolidateAfterMs } from '../../cluster/nodes/consolidate-after.ts'
import type { StateNode } from '../../cluster/nodes/state-node.ts'
import type { DisruptionMethod, Pass } from './method.ts'
import { isAtRest } from '../policy.ts'
import { tellUnconsolidatable } from '../remarks.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: Settings
}

const reason = 'Empty'
const type = 'empty'

export class Emptiness implements DisruptionMethod {
  readonly reason = reason
  readonly type = type
  readonly disruptionClass = 'graceful'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  concerns({ node }: StateNode): boolean {
    return node !== undefined && this.#deps.state.podsOnNodes.of(node.metadata.name).isEmpty
  }

  accepts(candidate: Candidate): boolean {
    const { pool } = candidate
    if (pool.spec.replicas !== undefined) return false
    if (!Number.isFinite(consolidateAfterMs(pool))) {
      tellUnconsolidatable(
        this.#deps,
        candidate,
        `consolidation is disabled (NodePool=${pool.metadata.name})`,
      )
      return false
    }
    return isEmpty(candidate) && isAtRest(this.#deps, candidate)
  }

  async pass({ candidates, find, begin }: Pass, signal: AbortSignal): Promise<boolean> {
    const { clock, settings, state, metrics, logger } = this.#deps
    const proposed = new Set(this.#withinBudget(candidates).map(({ providerID }) => providerID))
    if (proposed.size === 0) return false
    await clock.sleep(settings.validationDelayMs, signal)
    if (!state.decidable()) return false
    const left = (await find()).filter(({ providerID }) => proposed.has(providerID))
    const accepted = this.#withinBudget(left)
    if (accepted.length < proposed.size)
      metrics.failedValidations.inc({ consolidation_type: type }, proposed.size - accepted.length)
    if (accepted.length === 0) {
      logger.debug('gave up removing empty nodes', { because: left.length === 0 ? 'churn' : 'budget' })
      return false
    }
    await begin({
      reason,
      type,
      candidates: accepted,
      replacements: [],
      destinations: [],
      // A pod may have been bound while the taint was on its way.
      mayStillGo: ({ node }) => state.podsOnNodes.of(node.metadata.name).isEmpty,
    })
    return true
  }

  /** Takes candidates while their pool's budget lasts. */
  #withinBudget(empty: readonly Candidate[]): readonly Candidate[] {
    const remaining = remainingDisruptions(this.#deps, reason)
    return empty.toSorted(savingsOrder).filter(({ pool, providerID }) => {
      if (this.#deps.state.isNominated(providerID)) return false
      const left = remaining.get(pool.metadata.name) ?? 0
      remaining.set(pool.metadata.name, left - 1)
      return left > 0
    })
  }
}
