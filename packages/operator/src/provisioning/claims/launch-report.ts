/** Tells of claims that were created for pods. */
import { consumedBy, type NodeClaim, type NodePool, type Pod, sumOfPrices } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { ClaimCreations } from '../../nodeclaim/creation/claim-creations.ts'
import { bufferOf, isBufferPod } from '../../state/pods/buffer-pods.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { podsNoted } from '../../journal/entry.ts'
import { podList, shortened } from '../../text.ts'
import { type SchedulingReport } from '../reports/scheduling-report.ts'
import type { Journal } from '../../journal/journal.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly report: SchedulingReport
  readonly creations: ClaimCreations
  readonly state: Pick<ClusterState, 'buffers' | 'movedPods' | 'recentlyFilledNodes'>
  readonly events: EventRecorder
  readonly logger: Logger
  readonly journal: Pick<Journal, 'decided'>
}

export class LaunchReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns the id of the decision to create these claims, none of which is created yet. */
  decided(claims: readonly NewClaim[]): string {
    const pods = claims.flatMap((claim) => claim.pods.map(({ metadata }) => keyOf(metadata)))
    const { pricePerHour, unpriced } = sumOfPrices(claims.map((claim) => claim.pricePerHour))
    return this.#deps.journal.decided({
      kind: 'decision',
      reason: 'Provisioned',
      message: `${claims.length} NodeClaim(s) are created for ${pods.length} pod(s)${roomText(claims)}`,
      pods: podsNoted(pods),
      pricePerHour: { before: 0, ...(unpriced === 0 && { after: pricePerHour }) },
    })
  }

  /**
   * @param pool as the decision saw it.
   * @param decision id of the decision.
   */
  created(claim: NewClaim, created: NodeClaim, pool: NodePool, decision: string): void {
    const { creations, logger, report, state } = this.#deps
    const { name } = created.metadata
    if (claim.pricePerHour === undefined) this.#unpriced(created, claim)
    const roomPods = Map.groupBy(claim.roomPods ?? [], isBufferPod)
    const [buffered, requested] = [roomPods.get(true), roomPods.get(false)]
    if (buffered !== undefined) state.buffers.launched(name)
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
      decision,
      pods: claim.pods,
      pricePerHour: claim.pricePerHour,
      minValuesRelaxed: claim.minValuesRelaxed,
      details: {
        requests: created.spec.resources?.requests,
        'instance-types': shortened(claim.instanceTypes),
        Pods: podList(claim.pods),
        ...(buffered && { 'capacity-buffers': countsText(buffered, bufferOf) }),
        ...(requested && {
          'provisioning-requests': countsText(requested, (pod) => consumedBy(pod) ?? ''),
        }),
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

function roomText(claims: readonly NewClaim[]): string {
  const count = claims.reduce((sum, { roomPods = [] }) => sum + roomPods.length, 0)
  return count === 0
    ? ''
    : ` and the room of ${count} more that CapacityBuffers and ProvisioningRequests keep`
}

/** How many pods there is to be room for, by what keeps it. */
function countsText(pods: readonly Pod[], keeperOf: (pod: Pod) => string): string {
  return Array.from(Map.groupBy(pods, keeperOf), ([keeper, own]) => `${keeper}: ${own.length}`).join(', ')
}
