import { karpenterKinds, labels, type NodeClaim, parseDuration } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'
import { isReschedulable } from '../../cluster/pods/pods.ts'

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

/**
 * Deletes a claim and counts why. One that goes or is gone already is fine and not counted.
 * @param reason as in metric `karpenter_nodeclaims_disrupted_total`.
 * @param tags labels that tell the NodePool and the capacity type.
 * @returns whether this call did it.
 */
export async function deleteClaim(
  context: OperatorContext,
  claim: NodeClaim,
  reason: string,
  tags: Readonly<Record<string, string>> = claim.metadata.labels ?? {},
  { policy = '', movedPods = 0 }: DeletionAccount = {},
): Promise<boolean> {
  const nodeName = claim.status?.nodeName ?? ''
  const pods = nodeName === '' ? [] : context.state.podsOn(nodeName).filter(isReschedulable)
  try {
    await context.client.delete(
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
  if (!context.state.noteDeletion(claim)) return false
  const series = {
    reason,
    nodepool: tags[labels.nodePool] ?? '',
    capacity_type: tags[labels.capacityType] ?? '',
    consolidation_policy: policy,
    termination_mode: terminationMode(claim),
  }
  context.metrics.nodeClaimsDisrupted.inc(series)
  if (causesWithPods.has(reason)) context.metrics.podsDisruptionInitiated.inc(series, pods.length + movedPods)
  return true
}
