import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator'

type Entries = readonly (readonly [unknown, unknown])[]

/** CEL equality: numbers of all types by value, lists and maps by content. */
export function celEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (isNumeric(a) && isNumeric(b)) return numberOf(a) == numberOf(b) // oxlint-disable-line eqeqeq
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) return Array.isArray(b) && sameLists(a, b)
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime()
  if (a instanceof Duration) return b instanceof Duration && a.seconds === b.seconds && a.nanos === b.nanos
  return sameMaps(entriesOf(a), entriesOf(b))
}

function isNumeric(value: unknown): value is number | bigint | UnsignedInt {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof UnsignedInt
}

/** JavaScript compares numbers and bigints by value. */
function numberOf(value: number | bigint | UnsignedInt): number | bigint {
  return value instanceof UnsignedInt ? value.valueOf() : value
}

function sameLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => celEquals(item, b[index]))
}

export function entriesOf(map: object): Entries {
  return map instanceof Map ? [...map] : Object.entries(map)
}

function sameMaps(a: Entries, b: Entries): boolean {
  if (a.length !== b.length) return false
  return a.every(([key, value]) => b.some(([other, its]) => celEquals(key, other) && celEquals(value, its)))
}

/**
 * Negative, zero or positive, as in `Array.sort`.
 * @throws Error if the values have no order.
 */
export function celCompare(a: unknown, b: unknown): number {
  if (isNumeric(a) && isNumeric(b)) return order(numberOf(a), numberOf(b))
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (typeof a === 'string' && typeof b === 'string') return order(a, b)
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime()
  if (a instanceof Duration && b instanceof Duration) return a.valueOf() - b.valueOf()
  throw new Error('no such overload')
}

function order<T extends number | bigint | string>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}
