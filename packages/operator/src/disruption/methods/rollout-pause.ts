import type { Clock } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { type Candidate, tellBlocked } from '../candidates.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly clock: Clock
}

const dedupeTtlMs = 5 * 60_000

/** Whether drifted nodes of the candidate's pool are not replaced for now, which is told on the pool and the node. */
export function isRolloutPaused(deps: Dependencies, candidate: Candidate): boolean {
  const { events, state } = deps
  const { pool } = candidate
  const { name, uid = name } = pool.metadata
  const leftMs = state.rollouts.leftMs(name)
  if (leftMs === 0) return false
  const because = `drifted nodes of NodePool ${name} are not replaced for now, as a replacement was drifted itself`
  tellBlocked(deps, candidate, because)
  events.record({
    object: pool,
    type: 'Warning',
    reason: 'RolloutPaused',
    message: `A node that replaced a drifted one was drifted itself; the next one is replaced in ${Math.ceil(leftMs / 60_000)} min, or once the NodePool or its node class changes`,
    dedupe: [uid],
    dedupeTtlMs,
  })
  return true
}

/** Why a node stays whose replacement would be of this NodePool. */
export function heldBackText(pool: string): string {
  return `no NodeClaim of NodePool ${pool} is created in its place for now, as the last one did not become a node`
}
