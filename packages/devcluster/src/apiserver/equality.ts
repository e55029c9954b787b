/** Equality of JSON values; an `undefined` field counts as absent. */
import { ownValue } from '@tenon/api'
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && sameArray(a, b)
  return sameFields(a as Record<string, unknown>, b as Record<string, unknown>)
}

function sameArray(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => sameJson(item, b[index]))
}

function sameFields(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  for (const field in a) if (!sameJson(ownValue(a, field), ownValue(b, field))) return false
  for (const field in b)
    if (ownValue(b, field) !== undefined && ownValue(a, field) === undefined) return false
  return true
}
