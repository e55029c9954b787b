/**
 * Log lines in the text format of Kubernetes components (cluster-autoscaler.md 8, `--logging-format=text`).
 */
import { formatDuration } from '@tenon/api'
import { type Clock, type LogFields, type Logger, traceFields } from '@tenon/runtime'
import type { LogSeverity } from '../options/process-options.ts'

export type WriteLine = (line: string, severity: LogSeverity) => void

/**
 * Lines such as `I1126 20:04:05.123000       1 cluster-autoscaler] "message" key="value"`. A number with a key that
 * ends in `Ms` becomes a duration, with the key without `Ms`.
 */
export class TextLogger implements Logger {
  readonly #clock: Pick<Clock, 'now'>
  readonly #write: WriteLine
  readonly #isVerbose: boolean
  readonly #fields: LogFields

  /** @param isVerbose whether debug lines are written. */
  constructor(clock: Pick<Clock, 'now'>, write: WriteLine, isVerbose: boolean, fields: LogFields = {}) {
    this.#clock = clock
    this.#write = write
    this.#isVerbose = isVerbose
    this.#fields = fields
  }

  debug(message: string, fields?: LogFields): void {
    if (this.#isVerbose) this.#log('INFO', message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.#log('INFO', message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.#log('WARNING', message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.#log('ERROR', message, fields)
  }

  with(fields: LogFields): Logger {
    return new TextLogger(this.#clock, this.#write, this.#isVerbose, { ...this.#fields, ...fields })
  }

  #log(severity: LogSeverity, message: string, fields: LogFields = {}): void {
    const pairs = Object.entries({ ...traceFields(), ...this.#fields, ...fields }).map(pair)
    const words = [JSON.stringify(message), ...pairs].join(' ')
    this.#write(`${headOf(severity, this.#clock.now())} cluster-autoscaler] ${words}\n`, severity)
  }
}

/** The thread number is always 1. */
function headOf(severity: LogSeverity, nowMs: number): string {
  const [date = '', time = ''] = new Date(nowMs).toISOString().slice(0, -1).split('T')
  return `${severity.slice(0, 1)}${date.slice(5).replace('-', '')} ${time}000       1`
}

function pair([key, value]: readonly [string, unknown]): string {
  if (typeof value === 'number' && key.length > 2 && key.endsWith('Ms'))
    return `${key.slice(0, -2)}="${formatDuration(Math.round(value))}"`
  return `${key}=${textOf(value)}`
}

function textOf(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.message)
  if (typeof value === 'bigint') return String(value)
  try {
    return JSON.stringify(value) ?? 'undefined'
  } catch {
    // A cyclic value; only its existence can be logged.
    return '"(cannot be written)"'
  }
}
