import type { Clock } from '@tenon/runtime'

const sliceMs = 5

/**
 * Lets everything else run between the pieces of work of many that are alike, such as the reconciles of controllers.
 * Each of them would keep to a slice of its own, but all of their slices, and what follows from them in the same turn,
 * would come in a row.
 *
 * Virtual time stands still while something is done, so that there nothing ever waits.
 */
export class TurnPace {
  readonly #clock: Clock
  #spentMs = 0
  #waiting: (() => void)[] = []
  #isTurnPlanned = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether enough was done in this turn. */
  get isOver(): boolean {
    return this.#spentMs >= sliceMs
  }

  /** Notes that work has taken this long. */
  spend(ms: number): void {
    this.#spentMs += ms
  }

  /** Calls back once there has been a turn for everything else; who waits longest is next. */
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
