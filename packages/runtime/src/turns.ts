/** Splits long work into slices, so that the thread can serve other work in between. */
import type { Clock } from './clock.ts'

/** The event loop as a capability. */
export interface Turns {
  /** Resolves in a later turn, when what was waiting for this thread has run. */
  next(): Promise<void>
}

/** One of those who wait goes on in each turn, first come first served: their slices would add up in one. */
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

/** The event loop of this thread. Constructed into what composition roots build. */
export const eventLoopTurns: Turns = new EventLoopTurns()

/** How long work is cut. */
export interface Slicing {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly turns: Turns
  /** The thread is given up after this many milliseconds, at the end of the step in progress. */
  readonly sliceMs: number
}

/**
 * Takes step after step until there are no more, in as many turns as that needs.
 * @param shouldStop asked at the start of each turn; once it holds, the rest is not done.
 * @returns what the steps return, or undefined when they were stopped.
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
