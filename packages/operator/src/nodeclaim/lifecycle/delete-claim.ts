import { karpenterKinds, labels, type NodeClaim, parseDuration } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { isReschedulable } from '../../state/pods/pods.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'delete'>
  readonly state: Pick<ClusterState, 'podsOn' | 'noteDeletion'>
  readonly metrics: Pick<Metrics, 'nodeClaimsDisrupted' | 'podsDisruptionInitiated'>
  readonly claimJournal: ClaimJournal
}

/** Causes that hit claims with pods on them, whose number is counted too. */
const causesWithPods: ReadonlySet<string> = new Set([
  'drifted',
  'empty',
  'expired',
  'garbage_collected',
  'underutilized',
  'unhealthy',
])

/** `graceful` without a deadline, `forceful` with a zero one, `eventual` otherwise (lifecycle.md 14). */
function terminationMode(claim: NodeClaim): string {
  const grace = claim.spec.terminationGracePeriod
  if (grace === undefined) return 'graceful'
  return (parseDuration(grace) ?? 0) > 0 ? 'eventual' : 'forceful'
}

/** What else is counted with a deletion. */
export interface DeletionAccount {
  /** Consolidation policy of the NodePool, as in metric `karpenter_nodeclaims_disrupted_total`. */
  readonly policy?: string
  /** Pods that were told to leave the node for the same reason before. */
  readonly movedPods?: number
}

/** Deletes NodeClaims, and counts and notes why. */
export class ClaimDeleter {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * A claim that goes or is gone already is fine and not counted.
   * @param reason as in metric `karpenter_nodeclaims_disrupted_total`.
   * @param tags labels that tell the NodePool and the capacity type.
   * @returns whether this call did it.
   */
  async delete(
    claim: NodeClaim,
    reason: string,
    tags: Readonly<Record<string, string>> = claim.metadata.labels ?? {},
    { policy = '', movedPods = 0 }: DeletionAccount = {},
  ): Promise<boolean> {
    const { claimJournal, client, metrics, state } = this.#deps
    const nodeName = claim.status?.nodeName ?? ''
    const pods = nodeName === '' ? [] : state.podsOn(nodeName).filter(isReschedulable)
    try {
      await client.delete(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        claim.metadata.uid === undefined ? {} : { preconditionUid: claim.metadata.uid },
      )
    } catch (error) {
      // A conflict says that the name belongs to another claim by now.
      if (isKubeError(error, 'notFound', 'conflict')) return false
      throw error
    }
    // A cache that is behind lets several find the same claim; it goes once.
    if (!state.noteDeletion(claim)) return false
    const series = {
      reason,
      nodepool: tags[labels.nodePool] ?? '',
      capacity_type: tags[labels.capacityType] ?? '',
      consolidation_policy: policy,
      termination_mode: terminationMode(claim),
    }
    metrics.nodeClaimsDisrupted.inc(series)
    claimJournal.deleting(claim, reason, pods.length + movedPods)
    if (causesWithPods.has(reason)) metrics.podsDisruptionInitiated.inc(series, pods.length + movedPods)
    return true
  }
}
