import type { Clock } from './clock.ts'

/** How much a log line matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Values a log line may carry beside its constant message. Secrets must be wrapped in {@link Secret}. */
export type LogFields = Readonly<Record<string, unknown>>

/** Structured log. Messages are constant; what varies goes into fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A logger that adds `fields` to every line. */
  with(fields: LogFields): Logger
}

/** A credential. Its text form is `[redacted]`, so that it cannot reach a log, an event or an error. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The plain value; call it only where the credential is used. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '[redacted]'
  }

  toJSON(): string {
    return '[redacted]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[redacted]'
  }
}

const order: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 }

/** Writes one JSON object per line to `write`. */
export class JsonLogger implements Logger {
  readonly #clock: Clock
  readonly #write: (line: string) => void
  readonly #fields: LogFields
  readonly #level: { value: LogLevel }

  /** @param level a shared cell, so that the level can be changed while running. */
  constructor(
    clock: Clock,
    write: (line: string) => void,
    level: { value: LogLevel },
    fields: LogFields = {},
  ) {
    this.#clock = clock
    this.#write = write
    this.#level = level
    this.#fields = fields
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

  with(fields: LogFields): Logger {
    return new JsonLogger(this.#clock, this.#write, this.#level, { ...this.#fields, ...fields })
  }

  #log(level: LogLevel, message: string, fields?: LogFields): void {
    if (order[level] < order[this.#level.value]) return
    const time = new Date(this.#clock.now()).toISOString()
    const line = { level: level.toUpperCase(), time, message, ...this.#fields, ...fields }
    this.#write(`${JSON.stringify(line, errorsAsText)}\n`)
  }
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value
}

/** Discards everything; for tests and tools that have nothing to say. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  with() {
    return silentLogger
  },
}
