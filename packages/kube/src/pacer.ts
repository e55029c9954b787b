import type { Clock } from '@tenon/runtime'

/**
 * Keeps many small synchronous steps from blocking the event loop: adds up the time of the steps, without the waits
 * between them, and says when to yield. Virtual time stands still during a step, so tests never yield.
 */
export class Pacer {
  readonly #clock: Clock
  readonly #sliceMs: number
  #startedAt = 0
  #spentMs = 0

  constructor(clock: Clock, sliceMs = 4) {
    this.#clock = clock
    this.#sliceMs = sliceMs
  }

  begin(): void {
    this.#startedAt = this.#clock.monotonic()
  }

  /** Ends a step, after which the next one may begin; returns whether {@link turn} is due. */
  end(): boolean {
    const now = this.#clock.monotonic()
    this.#spentMs += now - this.#startedAt
    this.#startedAt = now
    return this.#spentMs >= this.#sliceMs
  }

  /** Yields to the event loop once. */
  async turn(): Promise<void> {
    this.#spentMs = 0
    await this.#clock.sleep(0)
  }
}
