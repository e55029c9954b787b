/** Comparing what servers tell again and again with what is held already. */
import { ownValue, setOwn } from '@tenon/api'

/** Whether two JSON values say the same; a field that is `undefined` is none. */
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
 * The value, with the parts of `held` that say the same in their place: what stayed as it was stays one object,
 * so that it takes memory once and is known at a glance not to have changed.
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
  // Copied at a stroke: to put an object together field by field takes many times as long.
  const kept: Record<string, unknown> = { ...fields }
  for (const name in fields) {
    const part = reusing(ownValue(fields, name), ownValue(before, name))
    if (part !== ownValue(fields, name)) setOwn(kept, name, part)
  }
  return kept as T
}
