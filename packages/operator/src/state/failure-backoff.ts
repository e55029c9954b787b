/** What has failed is not tried again for a while, for longer each time. */
import type { Clock } from '@tenon/runtime'

/** Times in milliseconds. */
export interface FailureBackoffOptions {
  /** Failures that have no consequence yet. */
  readonly freeFailures: number
  /** The first pause; each one after it is twice as long. */
  readonly baseMs: number
  readonly capMs: number
  /** A failure whose pause ended so long ago does not count any more. */
  readonly memoryMs: number
}

interface Failures {
  readonly failures: number
  readonly untilMs: number
}

/** Back-off by key. */
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

  /** Counts a failure of each key. */
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

  /** Takes up what an earlier process counted. */
  restore(key: string, failures: number, leftMs: number): void {
    this.#set(key, { failures, untilMs: this.#clock.monotonic() + leftMs })
  }

  #set(key: string, failures: Failures): void {
    this.#failures.set(key, failures)
    this.#latestMs = Math.max(this.#latestMs, failures.untilMs)
  }

  /** Whether there may be a key that is not tried again yet. */
  get isAnyPausing(): boolean {
    return this.#clock.monotonic() < this.#latestMs
  }

  /** How many failures count against the key. */
  failures(key: string): number {
    return this.#failures.get(key)?.failures ?? 0
  }

  /** For how many milliseconds the key is not tried again; 0 when it may be. */
  leftMs(key: string): number {
    return Math.max(0, (this.#failures.get(key)?.untilMs ?? 0) - this.#clock.monotonic())
  }

  /** Whether the key has failed, and that still counts. */
  hasFailed(key: string): boolean {
    const known = this.#failures.get(key)
    return known !== undefined && this.#clock.monotonic() - known.untilMs < this.#options.memoryMs
  }

  forget(keys: Iterable<string>): void {
    for (const key of keys) this.#failures.delete(key)
  }
}
