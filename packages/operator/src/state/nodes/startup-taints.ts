/** Taints that a starting Node has for a while (lifecycle.md 3.4, cluster-state.md 4.1). */
import { isKnownEphemeralTaint, type NodeClaim, sameTaint, type Taint } from '@tenon/api'

/**
 * Who takes a taint off a Node that starts: `startup` for an agent that the claim names or the cloud, `ephemeral` for
 * Kubernetes or Tenon; undefined when nobody does.
 * @param ofCloud those that the cloud removes.
 */
export function startupTaintKind(
  taint: Taint,
  claim: NodeClaim | undefined,
  ofCloud: readonly Taint[],
): 'startup' | 'ephemeral' | undefined {
  const startup = [...(claim?.spec.startupTaints ?? []), ...ofCloud]
  if (startup.some((each) => sameTaint(each, taint))) return 'startup'
  return isKnownEphemeralTaint(taint) ? 'ephemeral' : undefined
}
