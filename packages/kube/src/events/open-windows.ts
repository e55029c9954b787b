import type { Clock } from '@tenon/runtime'

/** Size at which expired windows are removed. */
const leastSweep = 4096
/** Above this size the oldest window is dropped, to bound memory. */
const mostWindows = 200_000

/**
 * Keys that are ignored for some time. The bound must exceed the number of pods: a smaller one would drop each pod's
 * window before its next event.
 */
export class OpenWindows {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #untilMs = new Map<string, number>()
  #sweepAt = leastSweep

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Opens a window for the key; returns false if one is open, which stays unchanged. */
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
    // Twice the remaining size, so that the amortized cost per key is constant.
    this.#sweepAt = Math.max(leastSweep, Math.min(2 * this.#untilMs.size, mostWindows + leastSweep))
  }
}
