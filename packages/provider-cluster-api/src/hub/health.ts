/** Whether the management cluster answers, as its requests show. */
import { isKubeError } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'

/** Told of every request. */
export class HubHealth {
  readonly #clock: Pick<Clock, 'now'>
  #isAway = false
  #backMs: number | undefined

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Until when it did not answer, in Unix milliseconds: now while that lasts, undefined when it never was so. */
  get awayUntilMs(): number | undefined {
    return this.#isAway ? this.#clock.now() : this.#backMs
  }

  get isAway(): boolean {
    return this.#isAway
  }

  /** @param error what a request ended with; undefined for an answer. */
  told(error?: unknown): void {
    if (error !== undefined && isKubeError(error, 'transport', 'server')) {
      this.#isAway = true
      return
    }
    if (this.#isAway) this.#backMs = this.#clock.now()
    this.#isAway = false
  }
}
