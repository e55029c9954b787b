/** Drift without surge: where a ceiling has no room for both, a drifted node goes before its successor (quotas.md 1). */
import { isConditionTrue } from '@tenon/api'
import type { ClusterState } from '../state/cluster-state.ts'
import { withoutNodes } from '../state/quotas.ts'
import type { Candidate } from './candidates.ts'
import type { PreparedRemoval } from './simulation.ts'

interface Parts {
  readonly state: Pick<ClusterState, 'poolClaims' | 'poolWishes'>
}

/**
 * Whether the NodePools of all these nodes are annotated `tenon.sh/drift-without-surge`, and all other nodes of these
 * NodePools are there: they go one after the other.
 */
export function mayGoFirst({ state }: Parts, nodes: readonly Candidate[]): boolean {
  return nodes.every(({ pool }) => {
    if (state.poolWishes(pool).driftWithoutSurge !== true) return false
    const { active, deleting, pendingDisruption } = state.poolClaims.of(pool.metadata.name)
    return (
      deleting.length + pendingDisruption.length === 0 &&
      active.every((claim) => isConditionTrue(claim, 'Initialized'))
    )
  })
}

/** The input of the simulation, as if quotas did not count these nodes any more. */
export function uncounted({ input, ...rest }: PreparedRemoval, nodes: readonly Candidate[]): PreparedRemoval {
  const quotas =
    input.quotas &&
    withoutNodes(
      input.quotas,
      nodes.map(({ node }) => node),
    )
  return { ...rest, input: { ...input, ...(quotas && { quotas }) } }
}
