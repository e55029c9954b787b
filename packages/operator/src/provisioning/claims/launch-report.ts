/** Tells of claims that were created for pods. */
import type { NodeClaim, NodePool } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { ClaimCreations } from './claim-creations.ts'
import { podList, type SchedulingReport, shortened } from '../reports/scheduling-report.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly report: SchedulingReport
  readonly creations: ClaimCreations
  readonly state: Pick<ClusterState, 'movedPods' | 'recentlyFilledNodes'>
  readonly events: EventRecorder
  readonly logger: Logger
}

export class LaunchReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param pool as the decision saw it. */
  created(claim: NewClaim, created: NodeClaim, pool: NodePool): void {
    const { creations, logger, report, state } = this.#deps
    const { name } = created.metadata
    if (claim.pricePerHour === undefined) this.#unpriced(created, claim)
    state.recentlyFilledNodes.fill(name)
    const workloads = state.movedPods.launchFor(claim.pods)
    if (workloads > 0)
      logger.info(
        'consolidation moved pods that needed a new node; their workloads are not consolidated for a while',
        { NodeClaim: { name }, workloads, Pods: podList(claim.pods) },
      )
    creations.note({
      name,
      nodePool: claim.nodePool,
      reason: 'provisioned',
      minValuesRelaxed: claim.minValuesRelaxed,
      details: {
        requests: created.spec.resources?.requests,
        'instance-types': shortened(claim.instanceTypes),
        Pods: podList(claim.pods),
      },
    })
    for (const pod of claim.pods) {
      report.placed(pod, pool, name)
      report.nominated(pod, created, undefined)
    }
  }

  /** A claim was made although nobody knows what it will cost. */
  #unpriced(claim: NodeClaim, { nodePool, instanceTypes }: NewClaim): void {
    const what = `No price is known for any instance type that fits the pods of this NodeClaim (${shortened(instanceTypes)})`
    const consequence = 'its cost is not included in totals, and it is not replaced to save money'
    this.#deps.logger.warn('launched without a known price', {
      NodePool: { name: nodePool },
      NodeClaim: { name: claim.metadata.name },
      'instance-types': shortened(instanceTypes),
    })
    this.#deps.events.record({
      object: claim,
      type: 'Warning',
      reason: 'PriceUnknown',
      message: `${what}; ${consequence}. A NodeOverlay with spec.price gives it one`,
      dedupe: [claim.metadata.uid ?? claim.metadata.name],
    })
  }
}
