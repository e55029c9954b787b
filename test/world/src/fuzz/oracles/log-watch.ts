/** Nothing throws, and no step of a NodeClaim is logged repeatedly. */
import process from 'node:process'
import type { Clock } from '@tenon/runtime'
import type { Finding } from '../case.ts'

/** A stack trace in the log means a bug. */
const stack = /\\n\s+at .*\.ts:\d+/
const programErrors =
  /TypeError|RangeError|ReferenceError|SyntaxError|is not a function|Cannot (read|set) propert|is not iterable|Invalid array length|could not be cloned|Maximum call stack/

/** Steps that happen to a NodeClaim once. A process that ends before the step is stored logs it again. */
const stepOfClaim =
  /"message":"((?:launched|registered|initialized) nodeclaim)".*"NodeClaim":\{"name":"([^"]+)"\}/
const mostRepeats = 5

/** Reads the log of the operator, and catches uncaught errors. */
export class LogWatch {
  readonly #findings: Finding[] = []
  readonly #texts = new Set<string>()
  readonly #steps = new Map<string, number>()
  #clock: Pick<Clock, 'monotonic'> = { monotonic: () => 0 }

  get findings(): readonly Finding[] {
    return this.#findings
  }

  /** Wraps the log's clock. */
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
    this.#countSteps(line)
    const isError = line.includes('"level":"ERROR"')
    if (!(isError && stack.test(line)) && !programErrors.test(line)) return
    this.#add(line.trim().slice(0, 1200))
  }

  #countSteps(line: string): void {
    const [, step, claim] = stepOfClaim.exec(line) ?? []
    if (step === undefined) return
    const key = `${step} ${claim}`
    const times = (this.#steps.get(key) ?? 0) + 1
    this.#steps.set(key, times)
    if (times !== mostRepeats + 1) return
    const text = `"${step}" was logged ${times} times for NodeClaim ${claim}`
    this.#findings.push({ oracle: 'saysOnce', text, atMs: this.#clock.monotonic() })
  }

  /** The returned function stops listening. */
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
    // Times and counts differ between lines.
    const same = text.replaceAll(/[\d.:TZ-]+/g, '')
    if (this.#texts.has(same)) return
    this.#texts.add(same)
    this.#findings.push({ oracle: 'noThrow', text, atMs: this.#clock.monotonic() })
  }
}
