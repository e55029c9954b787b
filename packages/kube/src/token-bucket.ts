import type { Clock } from '@tenon/runtime'

/** Tokens per second, and the burst. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** A token bucket that serves callers in order: each learns how long it has to wait. */
export class TokenBucket {
  readonly #rate: Rate
  readonly #clock: Clock
  #tokens: number
  #filledAt: number

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate
    this.#clock = clock
    this.#tokens = rate.burst
    this.#filledAt = clock.monotonic()
  }

  /** Takes one token, also in advance; returns the milliseconds until it is due. */
  reserve(): number {
    this.#fill()
    this.#tokens -= 1
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#rate.perSecond) * 1000
  }

  /** Takes one token if one is available now. */
  tryTake(): boolean {
    this.#fill()
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  /** Like {@link tryTake}, or takes a token in advance as long as no more than a burst is owed. */
  tryBorrow(): boolean {
    this.#fill()
    if (this.#tokens <= -this.#rate.burst) return false
    this.#tokens -= 1
    return true
  }

  /** Milliseconds until {@link tryTake} can succeed. */
  dueMs(): number {
    this.#fill()
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) / this.#rate.perSecond) * 1000
  }

  #fill(): void {
    const now = this.#clock.monotonic()
    const gained = ((now - this.#filledAt) / 1000) * this.#rate.perSecond
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + gained)
    this.#filledAt = now
  }
}
