/** Failures by key, with pauses that double. */
import type { Clock } from '@tenon/runtime'

/** Times in milliseconds. */
export interface FailureBackoffOptions {
  /** Failures before the first pause. */
  readonly freeFailures: number
  /** The first pause; each later one is twice as long. */
  readonly baseMs: number
  readonly capMs: number
  /** Failures are forgotten this long after the pause. */
  readonly memoryMs: number
}

interface Failures {
  readonly failures: number
  readonly untilMs: number
}

export class FailureBackoff {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #options: FailureBackoffOptions
  readonly #failures = new Map<string, Failures>()
  /** When the last of all pauses ends. */
  #latestMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonic'>, options: FailureBackoffOptions) {
    this.#clock = clock
    this.#options = options
  }

  note(keys: Iterable<string>): void {
    const { freeFailures, baseMs, capMs, memoryMs } = this.#options
    const now = this.#clock.monotonic()
    for (const [key, { untilMs }] of this.#failures) if (now - untilMs >= memoryMs) this.#failures.delete(key)
    for (const key of keys) {
      const failures = (this.#failures.get(key)?.failures ?? 0) + 1
      const counted = failures - freeFailures
      const pauseMs = counted <= 0 ? 0 : Math.min(capMs, baseMs * 2 ** (counted - 1))
      this.#set(key, { failures, untilMs: now + pauseMs })
    }
  }

  /** Restores failures counted by an earlier process. */
  restore(key: string, failures: number, leftMs: number): void {
    this.#set(key, { failures, untilMs: this.#clock.monotonic() + leftMs })
  }

  #set(key: string, failures: Failures): void {
    this.#failures.set(key, failures)
    this.#latestMs = Math.max(this.#latestMs, failures.untilMs)
  }

  /** Cheap check: false if no key is paused. */
  get isAnyPausing(): boolean {
    return this.#clock.monotonic() < this.#latestMs
  }

  failures(key: string): number {
    return this.#failures.get(key)?.failures ?? 0
  }

  /** Milliseconds left of the pause; 0 if there is none. */
  leftMs(key: string): number {
    return Math.max(0, (this.#failures.get(key)?.untilMs ?? 0) - this.#clock.monotonic())
  }

  /** Whether the key has failures that are not forgotten. */
  hasFailed(key: string): boolean {
    const known = this.#failures.get(key)
    return known !== undefined && this.#clock.monotonic() - known.untilMs < this.#options.memoryMs
  }

  forget(keys: Iterable<string>): void {
    for (const key of keys) this.#failures.delete(key)
  }
}
