/** Limits the pace of garbage collection, so that one wrong response cannot empty a cluster. */
import type { Clock } from '@tenon/runtime'

/** Shares of what is there. */
const mostAtOnce = 0.2
const mostAPass = 0.1

export interface SweepGuardOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  /** What is swept, as the metric `tenon_sweep_held_objects` names it. */
  readonly name: string
  /** How long a sweep of many must be wanted by every pass before the first of them goes. */
  readonly graceMs: number
}

/** What a pass may do with what it would delete. */
export interface SweepRound {
  /** May go now, each once a second witness agrees. */
  readonly admitted: readonly string[]
  /** Stay for now. */
  readonly held: readonly string[]
  /** Why, where it is not their number. */
  readonly why?: string
}

/**
 * Decides how many of what nobody seems to own may be deleted in one pass. One object, or at most 20 % of what is
 * there, may go. More than that is more likely a wrong answer than the truth: nothing goes until every pass of the
 * grace period has named it, and then at most 10 % a pass, at least one.
 */
export class SweepGuard {
  readonly name: string
  /** Says why nothing may go at all. */
  gate: (wanted: number, present: number) => string | undefined = () => undefined
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #graceMs: number
  /** Since when each of a sweep of many is to go. */
  readonly #since = new Map<string, number>()
  #held = 0

  constructor({ clock, name, graceMs }: SweepGuardOptions) {
    this.#clock = clock
    this.name = name
    this.#graceMs = graceMs
  }

  /** How many objects the last pass held back. */
  get held(): number {
    return this.#held
  }

  /**
   * Asked once in every pass, also when there is nothing to delete.
   * @param wanted ids of what the pass would delete.
   * @param present how many there are in all, those included.
   */
  admit(wanted: readonly string[], present: number): SweepRound {
    return this.#gated(wanted, present, () => this.#round(wanted, present))
  }

  /** The same where each is confirmed by a named read of the API server itself: then their number proves nothing. */
  admitOneByOne(wanted: readonly string[], present: number): SweepRound {
    return this.#gated(wanted, present, () => ({ admitted: [...wanted], held: [] }))
  }

  #gated(wanted: readonly string[], present: number, round: () => SweepRound): SweepRound {
    const why = this.gate(wanted.length, present)
    const result = why === undefined ? round() : { admitted: [], held: [...wanted], why }
    this.#held = result.held.length
    return result
  }

  #round(wanted: readonly string[], present: number): SweepRound {
    const now = this.#clock.monotonic()
    const named = new Set(wanted)
    for (const id of this.#since.keys()) if (!named.has(id)) this.#since.delete(id)
    // What is left of a sweep of many goes at its pace to the end.
    const isMany = this.#since.size > 0 || (wanted.length > 1 && wanted.length > mostAtOnce * present)
    if (!isMany) return { admitted: [...wanted], held: [] }
    for (const id of wanted) if (!this.#since.has(id)) this.#since.set(id, now)
    const ripe = wanted.filter((id) => now - (this.#since.get(id) ?? now) >= this.#graceMs)
    const admitted = ripe.slice(0, Math.max(1, Math.floor(mostAPass * present)))
    const going = new Set(admitted)
    return { admitted, held: wanted.filter((id) => !going.has(id)) }
  }
}

/** For events: what a pass would have deleted, why it did not, and when it will. */
export function heldMessage(what: string, { admitted, held, why }: SweepRound, present: number): string {
  const wanted = admitted.length + held.length
  if (why !== undefined) return `${wanted} of ${present} ${what}, and are kept: ${why}`
  return `${wanted} of ${present} ${what}; so many at once are probably a wrong response, so they are kept until later passes confirm it, and are then deleted slowly`
}
