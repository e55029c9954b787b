/** Decides when a world without faults has settled, and whether it took too long. */

const minute = 60_000
/** Everything has to be well within this time of the last fault. */
export const calmBoundMs = 100 * minute
/** The fleet has settled if no instance is launched or removed for this long. */
const settledMs = 12 * minute

/** The result of one check of the world. */
export interface Look {
  readonly nowMs: number
  /** The same text as long as no instance is launched or removed. */
  readonly fleet: string
  /** What is wrong. */
  readonly wrong: readonly string[]
  /** Instances launched since the calm phase began, and how many of them expiration explains at most. */
  readonly launches: number
  readonly launchesOfAge: number
  /** Whether controllers retry failing moves for ever, so that the fleet need not settle. */
  readonly repeats: boolean
}

export type Verdict =
  | { readonly kind: 'waiting' | 'well' }
  | { readonly kind: 'broken'; readonly invariant: string; readonly text: string }

/** Follows one world from the beginning of its calm phase. */
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

  /** How long it took until everything was well and stayed so, as far as known. */
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
      // With expiration, one replacement may be in progress at any time.
      if (nowMs - this.#wrongFromMs < settledMs) return { kind: 'waiting' }
      return { kind: 'broken', invariant: 'everythingIsWellInTheEnd', text: wrong.join('; ') }
    }
    if (launches > this.#mostLaunchesOfAge && !repeats)
      return { kind: 'broken', invariant: 'costSettles', text: 'instances still come and go' }
    return { kind: 'well' }
  }
}
