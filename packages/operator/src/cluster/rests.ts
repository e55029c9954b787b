/** What has failed is left alone for a while, for longer each time. */
import type { Clock } from '@tenon/runtime'

/** Times in milliseconds. */
export interface RestOptions {
  /** Failures that have no consequence yet. */
  readonly freeFailures: number
  /** The first rest; each one after it is twice as long. */
  readonly baseMs: number
  readonly capMs: number
  /** A rest that ended so long ago does not count any more. */
  readonly memoryMs: number
}

interface Rest {
  readonly failures: number
  readonly untilMs: number
}

export class Rests {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #options: RestOptions
  readonly #rests = new Map<string, Rest>()

  constructor(clock: Pick<Clock, 'monotonic'>, options: RestOptions) {
    this.#clock = clock
    this.#options = options
  }

  /** Counts a failure of each key. */
  note(keys: Iterable<string>): void {
    const { freeFailures, baseMs, capMs, memoryMs } = this.#options
    const now = this.#clock.monotonic()
    for (const [key, { untilMs }] of this.#rests) if (now - untilMs >= memoryMs) this.#rests.delete(key)
    for (const key of keys) {
      const failures = (this.#rests.get(key)?.failures ?? 0) + 1
      const counted = failures - freeFailures
      const restMs = counted <= 0 ? 0 : Math.min(capMs, baseMs * 2 ** (counted - 1))
      this.#rests.set(key, { failures, untilMs: now + restMs })
    }
  }

  /** Takes up what an earlier process counted. */
  restore(key: string, failures: number, leftMs: number): void {
    this.#rests.set(key, { failures, untilMs: this.#clock.monotonic() + leftMs })
  }

  /** How many failures count against the key. */
  failures(key: string): number {
    return this.#rests.get(key)?.failures ?? 0
  }

  /** How many milliseconds the key still rests; 0 when it does not. */
  leftMs(key: string): number {
    return Math.max(0, (this.#rests.get(key)?.untilMs ?? 0) - this.#clock.monotonic())
  }

  /** Whether the key has failed, and that still counts. */
  hasFailed(key: string): boolean {
    const rest = this.#rests.get(key)
    return rest !== undefined && this.#clock.monotonic() - rest.untilMs < this.#options.memoryMs
  }

  forget(keys: Iterable<string>): void {
    for (const key of keys) this.#rests.delete(key)
  }
}
