import type { Clock } from '@tenon/runtime'

const sliceMs = 5

/**
 * Yields to the event loop between pieces of work of many similar sources, such as the reconciles of controllers. If
 * each had its own time slice, all slices of one turn would add up. Virtual time stands still during work, so tests
 * never wait.
 */
export class TurnPace {
  readonly #clock: Clock
  #spentMs = 0
  #waiting: (() => void)[] = []
  #isTurnPlanned = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether this turn's time is used up. */
  get isOver(): boolean {
    return this.#spentMs >= sliceMs
  }

  /** Records the duration of work. */
  spend(ms: number): void {
    this.#spentMs += ms
  }

  /** Calls back in a later turn, in order of waiting. */
  wait(callback: () => void): void {
    this.#waiting.push(callback)
    this.#planTurn()
  }

  #planTurn(): void {
    if (this.#isTurnPlanned || this.#waiting.length === 0) return
    this.#isTurnPlanned = true
    this.#clock.after(0, () => {
      this.#isTurnPlanned = false
      this.#spentMs = 0
      const all = this.#waiting
      this.#waiting = []
      let called = 0
      while (called < all.length && !this.isOver) all[called++]?.()
      this.#waiting = [...all.slice(called), ...this.#waiting]
      this.#planTurn()
    })
  }
}
