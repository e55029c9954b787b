/** Splits long work into slices, so that the event loop can do other work in between. */
import type { Clock } from './clock.ts'

export interface Turns {
  /** Resolves in a later turn of the event loop. */
  next(): Promise<void>
}

/**
 * Resumes one waiter per turn, in order: several slices in one turn would block the event loop for their total
 * time.
 */
class EventLoopTurns implements Turns {
  readonly #waiting: (() => void)[] = []

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (this.#waiting.length === 1) this.#plan()
    })
  }

  #plan(): void {
    setImmediate(() => {
      const [first] = this.#waiting
      first?.()
      this.#waiting.shift()
      if (this.#waiting.length > 0) this.#plan()
    })
  }
}

export const eventLoopTurns: Turns = new EventLoopTurns()

export interface Slicing {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly turns: Turns
  /** After this many milliseconds, and the step in progress, the event loop gets a turn. */
  readonly sliceMs: number
}

/**
 * Runs all steps, in as many turns of the event loop as needed.
 * @param shouldStop is called at the start of each turn; if true, the remaining steps are skipped.
 * @returns what the steps return, or undefined if they were stopped.
 */
export async function inSlices<T>(steps: Iterator<unknown, T, undefined>, slicing: Slicing): Promise<T>
export async function inSlices<T>(
  steps: Iterator<unknown, T, undefined>,
  slicing: Slicing,
  shouldStop: () => boolean,
): Promise<T | undefined>
export async function inSlices<T>(
  steps: Iterator<unknown, T, undefined>,
  { clock, turns, sliceMs }: Slicing,
  shouldStop: () => boolean = () => false,
): Promise<T | undefined> {
  for (;;) {
    if (shouldStop()) return undefined
    const start = clock.monotonic()
    do {
      const step = steps.next()
      if (step.done === true) return step.value
    } while (clock.monotonic() - start < sliceMs)
    await turns.next()
  }
}
