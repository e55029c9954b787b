import { karpenterKinds, labels, type NodeClaim, parseDuration } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'

/** `graceful` without a deadline, `forceful` with a zero one, `eventual` otherwise (lifecycle.md 14). */
function terminationMode(claim: NodeClaim): string {
  const grace = claim.spec.terminationGracePeriod
  if (grace === undefined) return 'graceful'
  return (parseDuration(grace) ?? 0) > 0 ? 'eventual' : 'forceful'
}

/**
 * Deletes a claim and counts why. One that is gone already is fine and not counted.
 * @param reason as in metric `karpenter_nodeclaims_disrupted_total`.
 * @returns whether this call did it.
 */
export async function deleteClaim(
  context: OperatorContext,
  claim: NodeClaim,
  reason: string,
): Promise<boolean> {
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
  context.metrics.nodeClaimsDisrupted.inc({
    reason,
    nodepool: claim.metadata.labels?.[labels.nodePool] ?? '',
    capacity_type: claim.metadata.labels?.[labels.capacityType] ?? '',
    consolidation_policy: '',
    termination_mode: terminationMode(claim),
  })
  return true
}
