/** Comparing and sharing of JSON values, so that equal values take memory once. */
import { ownValue, setOwn } from '@tenon/api'

/** Whether two JSON values are equal; `undefined` fields are ignored. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let at = 0; at < a.length; at++) if (!isSameValue(a[at], b[at])) return false
    return true
  }
  return !Array.isArray(b) && areSameFields(a as Fields, b as Fields)
}

type Fields = Readonly<Record<string, unknown>>

function areSameFields(a: Fields, b: Fields): boolean {
  let fields = 0
  for (const name in a) {
    if (ownValue(a, name) === undefined) continue
    if (!isSameValue(ownValue(a, name), ownValue(b, name))) return false
    fields++
  }
  for (const name in b) if (ownValue(b, name) !== undefined) fields--
  return fields === 0
}

/**
 * The value, with its parts that equal those of `held` replaced by them: unchanged parts keep their identity, which saves
 * memory and makes comparison fast.
 */
export function reusing<T>(value: T, held: T | undefined): T {
  if (typeof value !== 'object' || typeof held !== 'object' || value === null || held === null) return value
  if (isSameValue(value, held)) return held
  if (Array.isArray(value))
    return Array.isArray(held)
      ? (value.map((item: unknown, at) => reusing(item, (held as readonly unknown[])[at])) as T)
      : value
  if (Array.isArray(held)) return value
  const [fields, before] = [value as Fields, held as Fields]
  // A spread is many times faster than copying field by field.
  const kept: Record<string, unknown> = { ...fields }
  for (const name in fields) {
    const part = reusing(ownValue(fields, name), ownValue(before, name))
    if (part !== ownValue(fields, name)) setOwn(kept, name, part)
  }
  return kept as T
}

/** Parts in each generation; a workload has few parts, however many pods. */
const generationSize = 10_000

/**
 * Gives equal parts of different objects one identity: pods of one workload are alike in almost everything, but arrive as
 * separate objects. Bounded: parts that are unused for two generations are forgotten.
 */
export class SharedParts {
  readonly #generationSize: number
  #young = new Map<string, unknown>()
  #old: ReadonlyMap<string, unknown> = new Map()

  /** @param size of a generation. */
  constructor(size: number = generationSize) {
    this.#generationSize = size
  }

  /**
   * The shared object that equals `part`.
   * @param like an earlier result that is likely equal, which is cheaper to check.
   */
  of<T>(part: T, like?: T): T {
    if (typeof part !== 'object' || part === null) return part
    if (like !== undefined && isSameValue(part, like)) return like
    const key = JSON.stringify(part)
    const known = this.#young.get(key)
    // Equal text implies the same type.
    if (known !== undefined) return known as T
    const shared = (this.#old.get(key) ?? part) as T
    if (this.#young.size >= this.#generationSize) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, shared)
    return shared
  }
}
