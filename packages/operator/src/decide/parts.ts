/**
 * Plain records in pieces, on their way between threads: copying a large one at once would hold the
 * thread that sends it, and the one that receives it, for as long as that takes.
 */

/** Some elements of a list, some entries of a map, or a whole value, of one field of a record. */
export type Part =
  | { readonly kind: 'list'; readonly field: string; readonly items: readonly unknown[] }
  | { readonly kind: 'map'; readonly field: string; readonly items: readonly (readonly [unknown, unknown])[] }
  | { readonly kind: 'value'; readonly field: string; readonly value: unknown }

const mostItems = 1024
const longMs = 2
const shortMs = 0.5

/** How many items go into one piece; learns from how long pieces take. */
export class PieceSize {
  #items = 16

  get items(): number {
    return this.#items
  }

  /** @param ms what the last piece took. */
  took(ms: number): void {
    if (ms > longMs) this.#items = Math.max(1, this.#items >> 1)
    else if (ms < shortMs) this.#items = Math.min(mostItems, this.#items << 1)
  }
}

/** The items in pieces of the size that holds when each is made. */
export function* pieces<T>(items: Iterable<T>, size: PieceSize): Generator<readonly T[], void, undefined> {
  let piece: T[] = []
  for (const item of items) {
    piece.push(item)
    if (piece.length < size.items) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}

/** Takes a record apart. Lists and maps among its fields are cut, everything else goes whole. */
export function* partsOf(record: object, size: PieceSize): Generator<Part, void, undefined> {
  for (const [field, value] of Object.entries(record) as (readonly [string, unknown])[]) {
    if (Array.isArray(value)) {
      yield { kind: 'list', field, items: [] }
      for (const items of pieces<unknown>(value, size)) yield { kind: 'list', field, items }
    } else if (value instanceof Map) {
      yield { kind: 'map', field, items: [] }
      for (const items of pieces<readonly [unknown, unknown]>(value, size))
        yield { kind: 'map', field, items }
    } else yield { kind: 'value', field, value }
  }
}

/** Puts the parts of a record together again. */
export class Assembly {
  readonly #fields = new Map<string, unknown>()

  add(part: Part): void {
    const known = this.#fields.get(part.field)
    switch (part.kind) {
      case 'list': {
        const list = (known ?? []) as unknown[]
        for (const item of part.items) list.push(item)
        this.#fields.set(part.field, list)
        break
      }
      case 'map': {
        const map = (known ?? new Map()) as Map<unknown, unknown>
        for (const [key, value] of part.items) map.set(key, value)
        this.#fields.set(part.field, map)
        break
      }
      case 'value':
        this.#fields.set(part.field, part.value)
    }
  }

  /** The record; only who asks knows what it is. */
  record(): unknown {
    return Object.fromEntries(this.#fields)
  }
}

/** Objects that many others refer to, each told once and named by its index. */
export class Shared<T> {
  readonly items: T[] = []
  readonly #indexes = new Map<T, number>()

  /** Index of the object, which is told apart by its identity. */
  indexOf(item: T): number {
    let index = this.#indexes.get(item)
    if (index === undefined) {
      index = this.items.push(item) - 1
      this.#indexes.set(item, index)
    }
    return index
  }
}
