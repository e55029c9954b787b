/** Nothing throws: neither in the log, nor past everyone's care. */
import process from 'node:process'
import type { Clock } from '@tenon/runtime'
import type { Finding } from '../case.ts'

/** A line that shows where in the program it came from shows a mistake in the program. */
const stack = /\\n\s+at .*\.ts:\d+/
const programErrors =
  /TypeError|RangeError|ReferenceError|SyntaxError|is not a function|Cannot (read|set) propert|is not iterable|Invalid array length|could not be cloned|Maximum call stack/

/** Reads what the operator logs, and catches what nobody caught. */
export class LogWatch {
  readonly #findings: Finding[] = []
  readonly #texts = new Set<string>()
  #clock: Pick<Clock, 'monotonic'> = { monotonic: () => 0 }

  get findings(): readonly Finding[] {
    return this.#findings
  }

  /** A clock for the log. */
  clock(clock: Pick<Clock, 'monotonic'>): Clock {
    this.#clock = clock
    const start = Date.UTC(2026, 0, 1)
    return {
      now: () => start + clock.monotonic(),
      monotonic: () => clock.monotonic(),
      sleep: () => Promise.reject(new Error('the log does not wait')),
      after: () => () => undefined,
    }
  }

  write(line: string): void {
    const isError = line.includes('"level":"ERROR"')
    if (!(isError && stack.test(line)) && !programErrors.test(line)) return
    this.#add(line.trim().slice(0, 1200))
  }

  /** Call the result to stop. */
  listen(): () => void {
    const onError = (error: unknown): void => {
      this.#add(`nobody caught: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    process.on('unhandledRejection', onError)
    process.on('uncaughtException', onError)
    return () => {
      process.off('unhandledRejection', onError)
      process.off('uncaughtException', onError)
    }
  }

  #add(text: string): void {
    // Times and counts differ from line to line.
    const same = text.replaceAll(/[\d.:TZ-]+/g, '')
    if (this.#texts.has(same)) return
    this.#texts.add(same)
    this.#findings.push({ oracle: 'noThrow', text, atMs: this.#clock.monotonic() })
  }
}
