import { type Clock, sleepOn } from '@tenon/runtime'

/** A clock whose timers and sleeps can all be ended, so that a stopped cloud leaves nothing running. */
export class StoppableClock implements Clock {
  readonly #clock: Clock
  readonly #stopped = new AbortController()
  readonly #cancels = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  /** Also rejects when the clock is stopped. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const stopped = this.#stopped.signal
    return sleepOn(this, ms, signal === undefined ? stopped : AbortSignal.any([signal, stopped]))
  }

  after(ms: number, callback: () => void): () => void {
    if (this.#stopped.signal.aborted) return () => {}
    const cancel = this.#clock.after(ms, () => {
      this.#cancels.delete(cancel)
      callback()
    })
    this.#cancels.add(cancel)
    return () => {
      this.#cancels.delete(cancel)
      cancel()
    }
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted
  }

  /** Cancels every timer and rejects every sleep. */
  stop(): void {
    this.#stopped.abort(new Error('the simulated cloud has stopped'))
    for (const cancel of this.#cancels) cancel()
    this.#cancels.clear()
  }
}
