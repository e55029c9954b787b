import type { Clock } from '@tenon/runtime'

/**
 * Keeps a long row of small synchronous steps from holding up the event loop: it adds up the time
 * of the steps, without the waits between them, and says when to let everything else run. Virtual
 * time stands still during a step, so there it never interferes.
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

  /** A step begins. */
  begin(): void {
    this.#startedAt = this.#clock.monotonic()
  }

  /** A step has ended, and the next one may begin; answers whether {@link turn} is due. */
  end(): boolean {
    const now = this.#clock.monotonic()
    this.#spentMs += now - this.#startedAt
    this.#startedAt = now
    return this.#spentMs >= this.#sliceMs
  }

  /** Lets everything else run once. */
  async turn(): Promise<void> {
    this.#spentMs = 0
    await this.#clock.sleep(0)
  }
}
