import { disruptionReasons, karpenterKinds, labels, type NodeClaim, parseDuration } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { isReschedulable } from '../../state/pods/pods.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** Reasons for which the pods on the node are counted, too. */
const causesWithPods: ReadonlySet<string> = new Set([
  'expired',
  'garbage_collected',
  'unhealthy',
  ...disruptionReasons.map((reason) => reason.toLowerCase()),
])

/** `graceful` without a deadline, `forceful` with a zero one, `eventual` otherwise (lifecycle.md 14). */
function terminationMode(claim: NodeClaim): string {
  const grace = claim.spec.terminationGracePeriod
  if (grace === undefined) return 'graceful'
  return (parseDuration(grace) ?? 0) > 0 ? 'eventual' : 'forceful'
}

export interface DeletionAccount {
  /** Consolidation policy of the NodePool, as in metric `karpenter_nodeclaims_disrupted_total`. */
  readonly policy?: string
  /** Pods that were evicted for the same reason before. */
  readonly movedPods?: number
}

/** Deletes NodeClaims; counts and journals the reason. */
export class ClaimDeleter {
  readonly #client: KubeClient
  readonly #state: ClusterState
  readonly #metrics: Metrics
  readonly #journal: ClaimJournal

  constructor(client: KubeClient, state: ClusterState, metrics: Metrics, journal: ClaimJournal) {
    this.#client = client
    this.#state = state
    this.#metrics = metrics
    this.#journal = journal
  }

  /**
   * A claim that is being deleted or is gone is not counted again.
   * @param reason as in metric `karpenter_nodeclaims_disrupted_total`.
   * @param tags labels with the NodePool and the capacity type.
   * @returns whether this call deleted it.
   */
  async delete(
    claim: NodeClaim,
    reason: string,
    tags: Readonly<Record<string, string>> = claim.metadata.labels ?? {},
    { policy = '', movedPods = 0 }: DeletionAccount = {},
  ): Promise<boolean> {
    const nodeName = claim.status?.nodeName ?? ''
    const pods = nodeName === '' ? [] : this.#state.podsOn(nodeName).filter(isReschedulable)
    try {
      await this.#client.delete(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        claim.metadata.uid === undefined ? {} : { preconditionUid: claim.metadata.uid },
      )
    } catch (error) {
      // A conflict means that the name belongs to another claim by now.
      if (isKubeError(error, 'notFound', 'conflict')) return false
      throw error
    }
    // Several may delete the same claim while the cache is behind; it counts once.
    if (!this.#state.noteDeletion(claim)) return false
    const series = {
      reason,
      nodepool: tags[labels.nodePool] ?? '',
      capacity_type: tags[labels.capacityType] ?? '',
      consolidation_policy: policy,
      termination_mode: terminationMode(claim),
    }
    this.#metrics.nodeClaimsDisrupted.inc(series)
    const count = pods.length + movedPods
    this.#journal.deleting(claim, reason, count)
    if (causesWithPods.has(reason)) this.#metrics.podsDisruptionInitiated.inc(series, count)
    return true
  }
}
