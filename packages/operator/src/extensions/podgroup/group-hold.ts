/** Opens the nodes of a group at one moment, as it could not run earlier anyway (gangs.md 7.3). */
import type { NodeClaim } from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim } from '../../state/pods/group-claims.ts'
import type { GroupStanding } from './standing.ts'
import type { GroupStrangers } from './group-strangers.ts'
import { canOpen } from '../../placement/standing-nominations.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'nodeOf' | 'podGroups'>
  readonly standing: GroupStanding
  readonly strangers: GroupStrangers
  readonly clock: Pick<Clock, 'now'>
}

const pollMs = 1000
/** Ordinary pods that would take the room are to have nodes of their own by then. */
const strangersMs = { longest: 5000, poll: 100, pollMost: 500 } as const

/** Since when a group could open, and whether ordinary pods are in its way. */
interface Readiness {
  readonly sinceMs: number
  readonly lookedMs: number
  readonly areStrangersNear: boolean
}

export class GroupHold {
  readonly #deps: Dependencies
  /** Ids of groups whose claims were told to open. */
  readonly #opening = new Set<string>()
  /** By id of the group. */
  readonly #ready = new Map<string, Readiness>()
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
      this.#ready.delete(id)
      return Math.min(leftMs, pollMs)
    }
    const kept = groups.find(({ id }) => this.#isKeptByStrangers(id))
    if (kept !== undefined) {
      // One that may open has the others ask: the more there are, the less often each need.
      return Math.min(strangersMs.pollMost, strangersMs.poll * standing.claimsOf(kept.id).length)
    }
    for (const { id } of groups) this.#open(id)
    return 0
  }

  /** Has the others of the group ask at once. */
  #open(id: string): void {
    this.#ready.delete(id)
    if (this.#opening.has(id)) return
    this.#opening.add(id)
    for (const { metadata } of this.#deps.standing.claimsOf(id))
      this.due.notify({ name: metadata.name, afterMs: 0 })
  }

  /** Whether ordinary pods are to be bound to nodes of their own before those of the group open. */
  #isKeptByStrangers(id: string): boolean {
    if (this.#opening.has(id)) return false
    const { clock, standing, state, strangers } = this.#deps
    const now = clock.now()
    const known = this.#ready.get(id)
    const sinceMs = known?.sinceMs ?? now
    if (now - sinceMs >= strangersMs.longest) return false
    // Each of its claims asks.
    if (known !== undefined && now - known.lookedMs < strangersMs.poll) return known.areStrangersNear
    const claims = standing.claimsOf(id)
    const nodes = claims.flatMap((claim) => state.nodeOf(claim) ?? [])
    const areStrangersNear = strangers.areNear(claims, nodes)
    this.#ready.set(id, { sinceMs, lookedMs: now, areStrangersNear })
    return areStrangersNear
  }

  #allCanOpen(id: string): boolean {
    const { standing, state } = this.#deps
    return standing.claimsOf(id).every((claim) => {
      const node = state.nodeOf(claim)
      return node !== undefined && canOpen(node)
    })
  }
}
