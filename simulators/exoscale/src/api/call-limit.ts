import type { Clock } from '@tenon/runtime'
import { Refusal } from './refusal.ts'
import type { ExoscaleSettings } from '../settings.ts'

/** Enforces {@link ExoscaleSettings.callLimit} with a token bucket. */
export class CallLimit {
  readonly #clock: Clock
  readonly #settings: ExoscaleSettings
  #tokens = Number.POSITIVE_INFINITY
  #filledAtMs = 0

  constructor(clock: Clock, settings: ExoscaleSettings) {
    this.#clock = clock
    this.#settings = settings
  }

  /** Counts one call, or refuses it with `Retry-After`. */
  take(): void {
    const { callLimit: limit } = this.#settings
    if (limit === undefined) return
    const now = this.#clock.monotonic()
    const added = ((now - this.#filledAtMs) / 1000) * limit.perSecond
    this.#tokens = Math.min(limit.burst, this.#tokens + added)
    this.#filledAtMs = now
    if (this.#tokens < 1) {
      const seconds = Math.ceil((1 - this.#tokens) / limit.perSecond)
      throw new Refusal(429, { message: 'too many requests' }, { 'retry-after': String(seconds) })
    }
    this.#tokens--
  }
}
