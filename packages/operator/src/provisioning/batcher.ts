import type { Clock } from '@tenon/runtime'

/**
 * Collects triggers into a batch, which ends when none came for the idle time, at the latest after the maximum time
 * (scheduling.md 3).
 */
export class Batcher {
  readonly #clock: Clock
  readonly #maxMs: number
  readonly #idleMs: number
  readonly #elements = new Set<string>()
  #lastAddedMs = Number.NEGATIVE_INFINITY
  #onFirst: (() => void) | undefined

  constructor(clock: Clock, maxMs: number, idleMs: number) {
    this.#clock = clock
    this.#maxMs = maxMs
    this.#idleMs = idleMs
  }

  /** Adds an element. One that is already in the batch does not extend it. */
  trigger(id: string): void {
    if (this.#elements.has(id)) return
    this.#elements.add(id)
    this.#lastAddedMs = this.#clock.monotonic()
    this.#onFirst?.()
  }

  /**
   * Resolves when a batch is complete; its elements may be triggered again from then on.
   * @returns when it began, by the monotonic clock.
   * @throws the signal's reason when it aborts before.
   */
  async wait(signal: AbortSignal): Promise<number> {
    if (this.#elements.size === 0) await this.#first(signal)
    const openedMs = this.#clock.monotonic()
    // One timer per window: thousands of triggers would be thousands of timers.
    for (;;) {
      const idleMs = Math.max(openedMs, this.#lastAddedMs) + this.#idleMs
      const leftMs = Math.min(idleMs, openedMs + this.#maxMs) - this.#clock.monotonic()
      if (leftMs <= 0) break
      await this.#clock.sleep(leftMs, signal)
    }
    this.#elements.clear()
    return openedMs
  }

  #first(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error)
        return
      }
      const onAbort = () => {
        this.#onFirst = undefined
        reject(signal.reason as Error)
      }
      this.#onFirst = () => {
        this.#onFirst = undefined
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }
}
