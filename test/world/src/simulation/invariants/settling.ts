/** When a world without faults counts as settled, and the deadline for it. */

const minute = 60_000
/** Everything has to be well so long after the last fault. */
export const calmBoundMs = 100 * minute
/** No instance comes or goes for so long, then the fleet is settled. */
const settledMs = 12 * minute

/** What one look at the world shows. */
export interface Look {
  readonly nowMs: number
  /** The same text as long as no instance comes or goes. */
  readonly fleet: string
  /** What is not as it should be. */
  readonly wrong: readonly string[]
  /** Instances launched since the calm began, and how many the expiry of the present ones explains by the bound. */
  readonly launches: number
  readonly launchesOfAge: number
  /** Whether the controllers try again forever what was in vain: a move that has to be undone may go on so. */
  readonly repeats: boolean
}

/** What follows from a look. */
export type Verdict =
  | { readonly kind: 'waiting' | 'well' }
  | { readonly kind: 'broken'; readonly invariant: string; readonly text: string }

/** Follows one world from the begin of its calm on. */
export class Settling {
  readonly #fromMs: number
  #fleet = ''
  #settledFromMs: number
  #wrongFromMs: number | undefined
  /** The fleet may have been larger before than it is in the end. */
  #mostLaunchesOfAge = 0

  constructor(fromMs: number) {
    this.#fromMs = fromMs
    this.#settledFromMs = fromMs
  }

  /** How long it took until all was well and stayed so, as far as is known. */
  get lastedMs(): number {
    return this.#settledFromMs - this.#fromMs
  }

  look({ nowMs, fleet, wrong, launches, launchesOfAge, repeats }: Look): Verdict {
    this.#wrongFromMs = wrong.length === 0 ? undefined : (this.#wrongFromMs ?? nowMs)
    if (fleet !== this.#fleet || wrong.length > 0) this.#settledFromMs = nowMs
    this.#fleet = fleet
    this.#mostLaunchesOfAge = Math.max(this.#mostLaunchesOfAge, launchesOfAge)
    if (nowMs - this.#settledFromMs >= settledMs) return { kind: 'well' }
    if (nowMs - this.#fromMs <= calmBoundMs) return { kind: 'waiting' }
    if (this.#wrongFromMs !== undefined) {
      // Where instances are replaced for their age, one of them may be on its way at any time.
      if (nowMs - this.#wrongFromMs < settledMs) return { kind: 'waiting' }
      return { kind: 'broken', invariant: 'everythingIsWellInTheEnd', text: wrong.join('; ') }
    }
    if (launches > this.#mostLaunchesOfAge && !repeats)
      return { kind: 'broken', invariant: 'costSettles', text: 'instances still come and go' }
    return { kind: 'well' }
  }
}
