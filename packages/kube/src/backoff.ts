import { type Random, unit } from '@tenon/runtime'

/** Growing pauses between attempts, in milliseconds. */
export interface BackoffOptions {
  readonly baseMs: number
  readonly capMs: number
}

/** `baseMs` doubled for every earlier failure, up to `capMs`. */
export function backoffMs({ baseMs, capMs }: BackoffOptions, failuresBefore: number): number {
  return Math.min(capMs, baseMs * 2 ** Math.min(failuresBefore, 60))
}

/** Back-off with jitter: between half and all of each step, so that loops do not synchronize. */
export class Backoff {
  readonly #options: BackoffOptions
  readonly #random: Random
  #failures = 0

  constructor(options: BackoffOptions, random: Random) {
    this.#options = options
    this.#random = random
  }

  get failures(): number {
    return this.#failures
  }

  next(): number {
    const step = backoffMs(this.#options, this.#failures++)
    return step * (0.5 + unit(this.#random) / 2)
  }

  reset(): void {
    this.#failures = 0
  }
}
