import type { Clock } from './clock.ts'
import type { LogLevel } from './log.ts'

const windowMs = 1000
const first = 100
const each = 100
/** Bounds memory. Messages are constant, so more than this are a bug; their counts are reset. */
const messageLimit = 4096

/** Limits repeated lines: per level and message, the first hundred per second are written, then each hundredth. */
export class LogSampler {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #seen = new Map<string, { count: number; untilMs: number }>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Counts the line and returns whether to write it. */
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
