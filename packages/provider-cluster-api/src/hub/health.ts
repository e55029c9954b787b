/** Whether the management cluster responds, by the results of requests. */
import { isKubeError } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'

/** Receives the result of every request. */
export class HubHealth {
  readonly #clock: Pick<Clock, 'now'>
  #isAway = false
  #backMs: number | undefined

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /**
   * Until when it did not respond, in Unix milliseconds: the current time while that lasts, undefined if it never
   * happened.
   */
  get awayUntilMs(): number | undefined {
    return this.#isAway ? this.#clock.now() : this.#backMs
  }

  get isAway(): boolean {
    return this.#isAway
  }

  /** @param error of a request; undefined for a success. */
  record(error?: unknown): void {
    if (error !== undefined && isKubeError(error, 'transport', 'server')) {
      this.#isAway = true
      return
    }
    if (this.#isAway) this.#backMs = this.#clock.now()
    this.#isAway = false
  }
}
