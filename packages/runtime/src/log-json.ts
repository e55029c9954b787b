/** Writes the log as lines of JSON (operations.md 8). */
import type { Clock } from './clock.ts'
import { type LogFields, type Logger, type LogLevel, StructuredError } from './log.ts'
import { scopeFields, traceFields } from './scope.ts'

const order: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 }

export interface JsonLoggerOptions {
  /** Program name; default `controller`. */
  readonly name?: string
  /** Git revision of the program, if known. */
  readonly commit?: string
  /** Called with values that cannot be serialized. */
  readonly onBroken?: (text: string) => void
}

/**
 * Writes one JSON object per line. Of equal messages, the first hundred of a second are written and then each
 * hundredth. A number under a key that ends in `Ms` is written as a duration, under the key without `Ms`.
 * @param level a shared cell, so that the level can be changed at run time.
 */
export class JsonLogger implements Logger {
  readonly #write: (line: string) => void
  readonly #clock: Clock
  readonly #level: { readonly value: LogLevel }
  readonly #options: JsonLoggerOptions
  readonly #sampler: LogSampler
  readonly #fields: LogFields

  constructor(
    clock: Clock,
    write: (line: string) => void,
    level: { readonly value: LogLevel },
    options: JsonLoggerOptions = {},
    /** Inherited from the parent logger. */
    origin: { readonly sampler?: LogSampler; readonly fields?: LogFields } = {},
  ) {
    this.#clock = clock
    this.#write = write
    this.#level = level
    this.#options = options
    this.#sampler = origin.sampler ?? new LogSampler(clock)
    this.#fields = origin.fields ?? {}
  }

  debug(message: string, fields?: LogFields): void {
    this.#log('debug', message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.#log('info', message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.#log('warn', message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.#log('error', message, fields)
  }

  /** A field `logger` is appended to the logger's name after a dot. */
  with({ logger, ...fields }: LogFields): Logger {
    const { name = 'controller' } = this.#options
    const options =
      typeof logger === 'string' ? { ...this.#options, name: `${name}.${logger}` } : this.#options
    return new JsonLogger(this.#clock, this.#write, this.#level, options, {
      sampler: this.#sampler,
      fields: { ...this.#fields, ...fields },
    })
  }

  #log(level: LogLevel, message: string, fields: LogFields = {}): void {
    const least = this.#level.value
    if (order[level] < order[least] || !this.#sampler.lets(level, message)) return
    const { name = 'controller', commit } = this.#options
    const head = {
      level: level.toUpperCase(),
      time: new Date(this.#clock.now()).toISOString(),
      logger: name,
      ...(least === 'debug' && { caller: callerOf(2) }),
      message,
      ...(commit !== undefined && { commit }),
    }
    this.#write(`${this.#text(head, { ...scopeFields(), ...traceFields(), ...this.#fields, ...fields })}\n`)
  }

  /** Standard keys such as time and message take precedence over fields with the same key. */
  #text(head: object, fields: LogFields): string {
    try {
      return JSON.stringify({ ...head, ...rendered(fields), ...head }, asText)
    } catch (error) {
      this.#options.onBroken?.(`a log line has values that cannot be written: ${String(error)}\n`)
      return JSON.stringify(head)
    }
  }
}

function rendered(fields: LogFields): Readonly<Record<string, unknown>> {
  const all = new Map<string, unknown>()
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === 'number' && key.length > 2 && key.endsWith('Ms')) {
      all.set(key.slice(0, -2), durationText(value))
      continue
    }
    all.set(key, value)
    if (!(value instanceof StructuredError)) continue
    for (const [name, part] of Object.entries(value.values)) all.set(name, part)
  }
  return Object.fromEntries(all)
}

function asText(_key: string, value: unknown): unknown {
  if (value instanceof Error) return value.message
  return typeof value === 'bigint' ? String(value) : value
}

/** Prints a duration as Go does, rounded to microseconds: `1.5s`, `2m0s`, `12.345ms`. */
export function durationText(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms)
  if (ms < 0) return `-${durationText(-ms)}`
  if (ms > 0 && ms < 1000) return `${Number(ms.toFixed(3))}ms`
  const seconds = ms / 1000
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)]
  const rest = `${Number((seconds % 60).toFixed(3))}s`
  if (hours > 0) return `${hours}h${minutes}m${rest}`
  return minutes > 0 ? `${minutes}m${rest}` : rest
}

/** Matches folder, file and line of a stack frame, without the query of its URL. */
const place = /([^/\\]+[/\\][^/\\?:]+)(?:\?[^:]*)?:(\d+):\d+\)?$/

/**
 * Returns `folder/file:line` of a caller. It captures a stack trace, which takes some microseconds.
 * @param above number of frames above the function that calls this one.
 */
function callerOf(above: number): string {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = above + 2
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = limit
  const [, file, line] = place.exec(stack.split('\n')[above + 2] ?? '') ?? []
  return file === undefined ? 'unknown' : `${file}:${line}`
}

const windowMs = 1000
const first = 100
const each = 100
/** Bounds memory. Messages are constant, so more than this are a bug; their counts are reset. */
const messageLimit = 4096

/** Limits repeated lines: per level and message, the first hundred per second are written, then each hundredth. */
class LogSampler {
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
