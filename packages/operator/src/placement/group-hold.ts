/** Opens the nodes of a group at one moment, as it could not run earlier anyway (gangs.md 7.3). */
import type { NodeClaim } from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import type { ClusterState } from '../cluster/cluster-state.ts'
import { groupsOfClaim } from '../cluster/pods/group-claims.ts'
import type { GroupStanding } from '../podgroup/standing.ts'
import { canOpen } from './standing-nominations.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'nodeOf' | 'podGroups'>
  readonly standing: GroupStanding
  readonly clock: Pick<Clock, 'now'>
}

const pollMs = 1000

export class GroupHold {
  readonly #deps: Dependencies
  /** Ids of groups whose claims were told to open. */
  readonly #opening = new Set<string>()
  /** Claims to ask for again after so long, or earlier. */
  readonly due: Listeners<{ readonly name: string; readonly afterMs: number }> = new Listeners()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Milliseconds after which to ask again; 0 once the claim's Node may open. */
  waitMs(claim: NodeClaim): number {
    const { clock, standing, state } = this.#deps
    // Claims of a process that had the feature gate on are like others.
    const groups = state.podGroups.isOn ? groupsOfClaim(claim) : []
    if (groups.length === 0) return 0
    const leftMs = standing.deadlineMs(claim) - clock.now()
    if (leftMs <= 0) return 0
    for (const { id } of groups) {
      if (standing.of(id).isWhole && this.#allCanOpen(id)) continue
      this.#opening.delete(id)
      return Math.min(leftMs, pollMs)
    }
    for (const { id } of groups) this.#open(id)
    return 0
  }

  /** Has the others of the group ask at once. */
  #open(id: string): void {
    if (this.#opening.has(id)) return
    this.#opening.add(id)
    for (const { metadata } of this.#deps.standing.claimsOf(id))
      this.due.notify({ name: metadata.name, afterMs: 0 })
  }

  #allCanOpen(id: string): boolean {
    const { standing, state } = this.#deps
    return standing.claimsOf(id).every((claim) => {
      const node = state.nodeOf(claim)
      return node !== undefined && canOpen(node)
    })
  }
}
