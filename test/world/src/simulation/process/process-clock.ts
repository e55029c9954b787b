import { type Clock, sleepOn } from '@tenon/runtime'

/**
 * The clock of one process: its wall time may be wrong, the process may be paused, and after a crash no timer
 * fires.
 */
export class ProcessClock implements Clock {
  readonly #host: Clock
  /** Added to wall time; timers and `monotonic` are not affected. */
  skewMs = 0
  #resumesAt = 0
  #isDead = false

  constructor(host: Clock) {
    this.#host = host
  }

  now(): number {
    return this.#host.now() + this.skewMs
  }

  monotonic(): number {
    return this.#host.monotonic()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal)
  }

  after(ms: number, callback: () => void): () => void {
    let cancel = this.#host.after(ms, () => {
      run()
    })
    const run = (): void => {
      if (this.#isDead) return
      const leftMs = this.#resumesAt - this.#host.monotonic()
      if (leftMs > 0) cancel = this.#host.after(leftMs, run)
      else callback()
    }
    return () => {
      cancel()
    }
  }

  /** Pauses the process. Timers that are due meanwhile fire at the end, in order. */
  pause(ms: number): void {
    this.#resumesAt = Math.max(this.#resumesAt, this.#host.monotonic() + ms)
  }

  get isPaused(): boolean {
    return this.#resumesAt > this.#host.monotonic()
  }

  /** Resolves when the process runs again. */
  async resumed(): Promise<void> {
    while (this.isPaused) await this.#host.sleep(this.#resumesAt - this.#host.monotonic())
  }

  kill(): void {
    this.#isDead = true
  }
}
