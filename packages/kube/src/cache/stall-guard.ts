import type { Clock } from '@tenon/runtime'

/** How long a watch may be silent, and how long it may last. */
export interface WatchLimits {
  readonly silentMs: number
  readonly totalMs?: number
}

/** Calls `onStall` if `touch` was not called for some time. Uses one timer, however many events arrive. */
export class StallGuard {
  readonly #clock: Clock
  readonly #onStall: () => void
  #silentMs = 0
  #endsAt = 0
  #touchedAt = 0
  #cancel: () => void = () => undefined

  constructor(clock: Clock, limits: WatchLimits, onStall: () => void) {
    this.#clock = clock
    this.#onStall = onStall
    this.limit(limits)
  }

  touch(): void {
    this.#touchedAt = this.#clock.monotonic()
  }

  /** Restarts with other limits. */
  limit({ silentMs, totalMs = Number.POSITIVE_INFINITY }: WatchLimits): void {
    this.#silentMs = silentMs
    this.touch()
    this.#endsAt = this.#touchedAt + totalMs
    this.#cancel()
    this.#arm()
  }

  stop(): void {
    this.#cancel()
  }

  #arm(): void {
    const leftMs = () => Math.min(this.#touchedAt + this.#silentMs, this.#endsAt) - this.#clock.monotonic()
    this.#cancel = this.#clock.after(leftMs(), () => {
      if (leftMs() <= 0) this.#onStall()
      else this.#arm()
    })
  }
}
