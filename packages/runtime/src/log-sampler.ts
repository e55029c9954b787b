import type { Clock } from './clock.ts'
import type { LogLevel } from './log.ts'

const windowMs = 1000
const first = 100
const each = 100
/** Messages are constant; more of them than this are somebody's mistake, and are counted again. */
const messageLimit = 4096

/** Holds repeated lines back: of one level and message a hundred per second pass, then each hundredth. */
export class LogSampler {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #seen = new Map<string, { count: number; untilMs: number }>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Counts the line; answers whether it is to be written. */
  lets(level: LogLevel, message: string): boolean {
    const now = this.#clock.monotonic()
    const key = `${level} ${message}`
    const seen = this.#seen.get(key)
    if (seen === undefined || now >= seen.untilMs) {
      if (seen === undefined && this.#seen.size >= messageLimit) this.#seen.clear()
      this.#seen.set(key, { count: 1, untilMs: now + windowMs })
      return true
    }
    seen.count++
    return seen.count <= first || (seen.count - first) % each === 0
  }
}
