import type { Clock } from '@tenon/runtime'

/** Size at which windows that have closed are looked for. */
const leastSweep = 4096
/** Beyond this, the window that was opened first is given up: memory comes before silence. */
const mostWindows = 200_000

/**
 * Keys that are to be ignored for a while. As many as there are: a bound that is lower than the number
 * of pods would forget each of them before it comes again.
 */
export class OpenWindows {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #untilMs = new Map<string, number>()
  #sweepAt = leastSweep

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Opens a window for the key; false when one is open, which stays as it is. */
  open(key: string, ms: number): boolean {
    const now = this.#clock.monotonic()
    if ((this.#untilMs.get(key) ?? now) > now) return false
    this.#untilMs.delete(key)
    this.#untilMs.set(key, now + ms)
    if (this.#untilMs.size >= this.#sweepAt) this.#sweep(now)
    return true
  }

  #sweep(now: number): void {
    for (const [key, untilMs] of this.#untilMs) if (untilMs <= now) this.#untilMs.delete(key)
    for (const key of this.#untilMs.keys()) {
      if (this.#untilMs.size <= mostWindows) break
      this.#untilMs.delete(key)
    }
    // Twice what is left, so that sweeping costs a constant amount for each key.
    this.#sweepAt = Math.max(leastSweep, Math.min(2 * this.#untilMs.size, mostWindows + leastSweep))
  }
}
