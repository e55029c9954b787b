export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Values of a log line. Secrets must be wrapped in {@link Secret}. */
export type LogFields = Readonly<Record<string, unknown>>

/** A structured log. Messages are constant; what varies goes into fields. */
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

/**
 * An error with structured values: a log line has each under its own key, and the error's text ends with all of
 * them, sorted by key (operations.md 8). Values of a structured cause are included.
 */
export class StructuredError extends Error {
  readonly values: LogFields

  constructor(message: string, values: LogFields, options?: ErrorOptions) {
    const { cause } = options ?? {}
    const all = cause instanceof StructuredError ? joined(cause.values, values) : values
    super(`${message}${pairs(all)}`, options)
    this.name = 'StructuredError'
    this.values = all
  }
}

/** If both have a key, its values become a list under the plural of the key. */
function joined(first: LogFields, second: LogFields): LogFields {
  const all = new Map<string, unknown>(Object.entries(first))
  for (const [key, value] of Object.entries(second)) {
    if (all.has(key)) {
      all.set(`${key}s`, [all.get(key), value])
      all.delete(key)
    } else all.set(key, value)
  }
  return Object.fromEntries(all)
}

function pairs(values: LogFields): string {
  const words = Object.entries(values)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return words.length === 0 ? '' : ` (${words.join(', ')})`
}

/** Discards everything; for tests and tools. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  with() {
    return silentLogger
  },
}
