import { isRecord, ownValue, setOwn } from '@tenon/api'

/**
 * A set of field paths in the form of `fieldsV1`: keys are path elements (`f:name`, `k:{…}`, `v:…`); `.` or an empty
 * node marks the path itself as a member. Never changed in place.
 */
export type FieldSet = { readonly [element: string]: FieldSet }

/** A member without members below. */
export const leaf: FieldSet = {}

const self = '.'

function isMember(set: FieldSet): boolean {
  if (self in set) return true
  for (const _ in set) return false
  return true
}

function build(children: Record<string, FieldSet> | undefined, member: boolean): FieldSet | undefined {
  if (children === undefined) return member ? leaf : undefined
  return member ? { [self]: leaf, ...children } : children
}

/** The union; one of the two sets if it contains the other. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  const member = isMember(a) || isMember(b)
  let merged: Record<string, FieldSet> | undefined
  for (const key in b) {
    if (key === self) continue
    const mine = ownValue(a, key)
    const other = ownValue(b, key) as FieldSet
    const next = mine === undefined ? other : union(mine, other)
    if (next === mine) continue
    merged ??= { ...a }
    setOwn(merged, key, next)
  }
  const joined = merged ?? a
  if (!member || isMember(joined)) return joined
  return { [self]: leaf, ...joined }
}

/** The difference; `a` itself if nothing is removed, undefined if nothing is left. */
function difference(a: FieldSet, b: FieldSet): FieldSet | undefined {
  const wasMember = isMember(a)
  const member = wasMember && !isMember(b)
  let changed = member !== wasMember
  let children: Record<string, FieldSet> | undefined
  for (const key in a) {
    if (key === self) continue
    const mine = ownValue(a, key) as FieldSet
    const other = ownValue(b, key)
    const kept = other === undefined ? mine : difference(mine, other)
    if (kept !== mine) changed = true
    if (kept === undefined) continue
    children ??= {}
    setOwn(children, key, kept)
  }
  return changed ? build(children, member) : a
}

/** The intersection; undefined if it is empty. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet | undefined {
  let children: Record<string, FieldSet> | undefined
  for (const key in a) {
    const other = ownValue(b, key)
    if (key === self || other === undefined) continue
    const common = intersection(ownValue(a, key) as FieldSet, other)
    if (common === undefined) continue
    children ??= {}
    setOwn(children, key, common)
  }
  return build(children, isMember(a) && isMember(b))
}

/** Difference of whole sets, whose root is never a member; undefined if nothing is left. */
export function subtract(a: FieldSet, b: FieldSet): FieldSet | undefined {
  const rest = difference(a, b)
  if (rest === undefined) return undefined
  for (const key in rest) if (key !== self) return rest
  return undefined
}

/** The same members, with elements sorted by field, key and value like the API server. */
export function sortedSet(set: FieldSet): FieldSet {
  const keys = Object.keys(set)
  if (keys.length === 0) return set
  let inOrder = true
  for (let index = 1; index < keys.length; index++) {
    if ((keys[index - 1] as string) > (keys[index] as string)) inOrder = false
  }
  if (!inOrder) keys.sort()
  let changed = !inOrder
  const sorted: Record<string, FieldSet> = {}
  for (const key of keys) {
    const child = ownValue(set, key) as FieldSet
    const next = sortedSet(child)
    if (next !== child) changed = true
    setOwn(sorted, key, next)
  }
  return changed ? sorted : set
}

/** Member paths as in conflict messages (`.spec.containers[name="web"].image`). */
export function pathsOf(set: FieldSet, prefix = ''): readonly string[] {
  const paths: string[] = []
  for (const [key, child] of Object.entries(set)) {
    if (key === self) continue
    const path = prefix + elementText(key)
    if (isMember(child)) paths.push(path)
    paths.push(...pathsOf(child, path))
  }
  return paths
}

function elementText(element: string): string {
  const value = element.slice(2)
  if (element.startsWith('f:')) return `.${value}`
  if (element.startsWith('v:')) return `[=${value}]`
  if (!element.startsWith('k:')) return `[${value}]`
  const keys: unknown = JSON.parse(value)
  const parts = isRecord(keys)
    ? Object.entries(keys).map(([key, part]) => `${key}=${JSON.stringify(part)}`)
    : []
  return `[${parts.join(',')}]`
}

/** A stored `fieldsV1` as a set; anything else counts as empty. */
export function fieldSetOf(fieldsV1: unknown): FieldSet | undefined {
  return isRecord(fieldsV1) && Object.keys(fieldsV1).length > 0 ? (fieldsV1 as FieldSet) : undefined
}
