import type { EventRecorder } from '@tenon/kube'
import { type Candidate, tellBlocked } from '../candidates.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'rollouts'>
  readonly events: EventRecorder
}

const dedupeTtlMs = 5 * 60_000

/** Keeps drifted nodes whose replacements would be drifted themselves. */
export class RolloutPause {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether drifted nodes of the candidate's pool are not replaced for now, which is told on the pool and the node. */
  holds(candidate: Candidate): boolean {
    const { events, state } = this.#deps
    const { pool } = candidate
    const { name, uid = name } = pool.metadata
    const leftMs = state.rollouts.leftMs(name)
    if (leftMs === 0) return false
    const because = `drifted nodes of NodePool ${name} are not replaced for now, because a replacement was drifted itself`
    tellBlocked(events, candidate, because)
    events.record({
      object: pool,
      type: 'Warning',
      reason: 'RolloutPaused',
      message: `The replacement of a drifted node was drifted itself; the next one is replaced in ${Math.ceil(leftMs / 60_000)} min, or once the NodePool or its node class changes`,
      dedupe: [uid],
      dedupeTtlMs,
    })
    return true
  }
}

/** Why a node stays whose replacement would be of this NodePool. */
export function heldBackText(pool: string): string {
  return `no NodeClaim of NodePool ${pool} is created as a replacement for now, because the last one did not become a node`
}
