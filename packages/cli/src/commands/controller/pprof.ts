/** Writes uncompressed profiles in pprof format (github.com/google/pprof, proto/profile.proto). */

/** A function on the stack, with its position according to V8. */
export interface Frame {
  readonly functionName: string
  readonly url: string
  /** Counts from 0. */
  readonly lineNumber: number
}

/** A sample: a stack, innermost frame first, and its values. */
export interface StackSample {
  readonly stack: readonly Frame[]
  /** One for each of the profile's types. */
  readonly values: readonly number[]
}

export interface StackProfile {
  /** Type and unit of each value, such as `cpu` in `nanoseconds`. */
  readonly types: readonly { readonly type: string; readonly unit: string }[]
  readonly samples: readonly StackSample[]
  readonly timeMs: number
  readonly durationMs: number
}

export function encodePprof({ types, samples, timeMs, durationMs }: StackProfile): Uint8Array {
  const strings = new Numbering<string>((text) => text, 0)
  strings.of('')
  const frames = new Numbering<Frame>(
    ({ functionName, url, lineNumber }) => `${functionName} ${url} ${lineNumber}`,
    1,
  )
  const profile = new Message()
  for (const { type, unit } of types)
    profile.message(1, new Message().integer(1, strings.of(type)).integer(2, strings.of(unit)))
  for (const { stack, values } of samples) {
    const ids = stack.map((frame) => frames.of(frame))
    profile.message(2, new Message().packed(1, ids).packed(2, values))
  }
  for (const [id, frame] of frames.entries()) {
    // One location per function: V8 reports only where a function begins.
    const line = new Message().integer(1, id).integer(2, frame.lineNumber + 1)
    profile.message(4, new Message().integer(1, id).message(4, line))
    const name = strings.of(frame.functionName === '' ? '(anonymous)' : frame.functionName)
    profile.message(
      5,
      new Message().integer(1, id).integer(2, name).integer(3, name).integer(4, strings.of(frame.url)),
    )
  }
  for (const [, text] of strings.entries()) profile.bytes(6, new TextEncoder().encode(text))
  profile.integer(9, timeMs * 1e6).integer(10, durationMs * 1e6)
  return profile.encoded()
}

/** Numbers values, equal ones alike. */
class Numbering<T> {
  readonly #keyOf: (value: T) => string
  readonly #first: number
  readonly #values = new Map<string, readonly [number, T]>()

  constructor(keyOf: (value: T) => string, first: number) {
    this.#keyOf = keyOf
    this.#first = first
  }

  of(value: T): number {
    const key = this.#keyOf(value)
    const known = this.#values.get(key)
    if (known !== undefined) return known[0]
    const number = this.#first + this.#values.size
    this.#values.set(key, [number, value])
    return number
  }

  entries(): Iterable<readonly [number, T]> {
    return this.#values.values()
  }
}

/** Encodes the subset of protocol buffers that profiles need. */
class Message {
  readonly #bytes: number[] = []

  integer(field: number, value: number): this {
    this.#varint(field << 3)
    this.#varint(value)
    return this
  }

  packed(field: number, values: readonly number[]): this {
    const inner = new Message()
    for (const value of values) inner.#varint(value)
    return this.message(field, inner)
  }

  message(field: number, inner: Message): this {
    return this.bytes(field, inner.#bytes)
  }

  bytes(field: number, bytes: Iterable<number> & { readonly length: number }): this {
    this.#varint((field << 3) | 2)
    this.#varint(bytes.length)
    for (const byte of bytes) this.#bytes.push(byte)
    return this
  }

  encoded(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }

  #varint(value: number): void {
    let rest = BigInt(Math.max(0, Math.round(value)))
    while (rest > 127n) {
      this.#bytes.push(Number(rest & 127n) | 128)
      rest >>= 7n
    }
    this.#bytes.push(Number(rest))
  }
}
