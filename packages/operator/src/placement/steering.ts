/** Whether it matters which of the planned nodes a pod lands on (planned-placement.md). */
import { demandsOf, type SchedulingResult } from '@tenon/engine'

/**
 * Tells in steps whether the Kubernetes scheduler could spoil the plan. It cannot when there is only
 * one node to go to, or when all pods are alike: then any pod may take the place of any other.
 */
export function* needsSteering({
  placements,
  claims,
}: Pick<SchedulingResult, 'placements' | 'claims'>): Generator<undefined, boolean, undefined> {
  const nodes = new Set(placements.map(({ node }) => node))
  if (nodes.size + claims.length < 2) return false
  let first: string | undefined
  for (const pods of [placements.map(({ pod }) => pod), ...claims.map((claim) => claim.pods)]) {
    for (const pod of pods) {
      const demands = demandsOf(pod)
      first ??= demands
      if (demands !== first) return true
      yield
    }
  }
  return false
}
