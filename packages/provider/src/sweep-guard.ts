/** Limits the pace of garbage collection, so that one wrong response cannot empty a cluster. */
import type { Clock } from '@tenon/runtime'

/** Shares of all objects. */
const mostAtOnce = 0.2
const mostAPass = 0.1

export interface SweepGuardOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  /** What is swept, as in the metric `tenon_sweep_held_objects`. */
  readonly name: string
  /** How long every pass must agree before the first object of a large sweep is deleted. */
  readonly graceMs: number
  /** How long people are told of an object before it is deleted, if `admit` asks for that. */
  readonly noticeMs?: number
}

/** The decision about one pass. */
export interface SweepRound {
  /** May be deleted now, each after a second check. */
  readonly admitted: readonly string[]
  /** Must stay for now. */
  readonly held: readonly string[]
  /** How many of those are held only until people have been told of them for long enough. */
  readonly announced?: number
  /** Why they are held, if not because of their number. */
  readonly why?: string
}

/**
 * Decides how many unowned objects one pass may delete: one, or at most 20 % of all. A larger number is more likely a
 * wrong response: nothing is deleted until every pass of the grace period agrees, and then at most 10 % per pass, at
 * least one.
 */
export class SweepGuard {
  readonly name: string
  /** Returns why nothing may be deleted at all. */
  gate: (wanted: number, present: number) => string | undefined = () => undefined
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #graceMs: number
  readonly #noticeMs: number
  /** For each object that needs notice, since when people are told. */
  readonly #noticed = new Map<string, number>()
  /** For each object of a large sweep, since when it is to be deleted. */
  readonly #since = new Map<string, number>()
  #held = 0

  constructor({ clock, name, graceMs, noticeMs = 0 }: SweepGuardOptions) {
    this.#noticeMs = noticeMs
    this.#clock = clock
    this.name = name
    this.#graceMs = graceMs
  }

  /** How many objects the last pass held back. */
  get held(): number {
    return this.#held
  }

  /**
   * Call it in every pass, even if there is nothing to delete.
   * @param wanted ids that the pass would delete.
   * @param present the number of all objects, including those.
   * @param needsNotice whether people are told of an object for `noticeMs` before it is deleted.
   */
  admit(
    wanted: readonly string[],
    present: number,
    needsNotice: (id: string) => boolean = () => false,
  ): SweepRound {
    const named = new Set(wanted)
    for (const times of [this.#noticed, this.#since])
      for (const id of times.keys()) if (!named.has(id)) times.delete(id)
    return this.#gated(wanted, present, () => {
      const early = this.#early(wanted.filter(needsNotice))
      const admitted = this.#admitted(wanted, present, early)
      const going = new Set(admitted)
      const held = wanted.filter((id) => !going.has(id))
      return { admitted, held, ...(early.size > 0 && { announced: early.size }) }
    })
  }

  /**
   * The same for objects that are each confirmed by reading them from the API server, so that their number does not
   * matter.
   */
  admitOneByOne(wanted: readonly string[], present: number): SweepRound {
    return this.#gated(wanted, present, () => ({ admitted: [...wanted], held: [] }))
  }

  #gated(wanted: readonly string[], present: number, round: () => SweepRound): SweepRound {
    const why = this.gate(wanted.length, present)
    const result = why === undefined ? round() : { admitted: [], held: [...wanted], why }
    this.#held = result.held.length
    return result
  }

  /** Those of which people are told for too short a time. */
  #early(ids: readonly string[]): ReadonlySet<string> {
    const now = this.#clock.monotonic()
    for (const id of ids) if (!this.#noticed.has(id)) this.#noticed.set(id, now)
    return new Set(ids.filter((id) => now - (this.#noticed.get(id) ?? now) < this.#noticeMs))
  }

  /** @param early objects that stay for now, and take nothing of the pace of the others. */
  #admitted(wanted: readonly string[], present: number, early: ReadonlySet<string>): readonly string[] {
    const now = this.#clock.monotonic()
    const told = wanted.filter((id) => !early.has(id))
    // The rest of a large sweep keeps its limited pace.
    const isMany = this.#since.size > 0 || (wanted.length > 1 && wanted.length > mostAtOnce * present)
    if (!isMany) return told
    for (const id of wanted) if (!this.#since.has(id)) this.#since.set(id, now)
    const ripe = told.filter((id) => now - (this.#since.get(id) ?? now) >= this.#graceMs)
    return ripe.slice(0, Math.max(1, Math.floor(mostAPass * present)))
  }
}

/** For events: what would have been deleted, why it was not, and when it will be. */
export function heldMessage(
  what: string,
  { admitted, held, announced, why }: SweepRound,
  present: number,
): string {
  const wanted = admitted.length + held.length
  if (announced === held.length)
    return `${wanted} of ${present} ${what}, as after a restore of etcd; they are kept for ten minutes, longer if they are many, and are then deleted`
  if (why !== undefined) return `${wanted} of ${present} ${what}, and are kept: ${why}`
  return `${wanted} of ${present} ${what}; so many at once are probably a wrong response, so they are kept until later passes confirm it, and are then deleted slowly`
}
