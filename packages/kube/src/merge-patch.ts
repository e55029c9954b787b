import { isRecord, ownValue, setOwn } from '@tenon/api'
type JsonObject = Readonly<Record<string, unknown>>

/**
 * The smallest RFC 7386 merge patch from `before` to `after`, or `undefined` if they are equal. Arrays are replaced
 * whole; fields that are absent (or undefined) in `after` are removed.
 */
export function mergePatchOf(before: object, after: object): Record<string, unknown> | undefined {
  const patch = differenceOf(before as JsonObject, after as JsonObject)
  return Object.keys(patch).length === 0 ? undefined : patch
}

function differenceOf(before: JsonObject, after: JsonObject): Record<string, unknown> {
  const patch: Record<string, unknown> = {}
  for (const key of Object.keys(before)) {
    if (isPresent(ownValue(before, key)) && !isPresent(ownValue(after, key))) setOwn(patch, key, null)
  }
  for (const [key, wanted] of Object.entries(after)) {
    if (!isPresent(wanted)) continue
    const held = ownValue(before, key)
    if (isRecord(held) && isRecord(wanted)) {
      const nested = differenceOf(held, wanted)
      if (Object.keys(nested).length > 0) setOwn(patch, key, nested)
    } else if (!sameJson(held, wanted)) {
      setOwn(patch, key, isRecord(wanted) ? withoutAbsent(wanted) : wanted)
    }
  }
  return patch
}

/** A merge patch cannot set null: absent, undefined and null are the same to it. */
function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function withoutAbsent(value: JsonObject): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => isPresent(field))
      .map(([key, field]) => [key, isRecord(field) ? withoutAbsent(field) : field]),
  )
}

/** Equality of JSON values: the order of fields does not matter, undefined fields count as absent. */
function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => sameJson(item, b[index]))
  if (!isRecord(a) || !isRecord(b)) return false
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].every((key) => sameJson(ownValue(a, key), ownValue(b, key)))
}
