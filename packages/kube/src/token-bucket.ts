import type { Clock } from '@tenon/runtime'

/** How fast and how much at once. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** A token bucket whose takers are served in order: each is told how long it has to wait. */
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

  /** Takes one token, if need be from the future; answers the milliseconds until it is due. */
  reserve(): number {
    this.#fill()
    this.#tokens -= 1
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#rate.perSecond) * 1000
  }

  /** Takes one token if there is one now. */
  tryTake(): boolean {
    this.#fill()
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  /** The same, or one from the future as long as no more than the burst is owed. */
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
