import { ownValue, setOwn } from '@tenon/api'
import type { SchemaNode } from '../../contract.ts'
import { childOf, jsonEqual } from '../shape-node.ts'
import type { FieldSet } from './field-set.ts'
import { granularityOf, itemElement, missingKey } from './list-identity.ts'

/** Why an applied configuration does not match the schema; undefined if it does. */
export function misfit(value: unknown, node: SchemaNode | undefined, path = ''): string | undefined {
  if (node === undefined || typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return misfitList(value, node, path)
  for (const [key, child] of Object.entries(value)) {
    const childNode = childOf(node, key)
    const closed = node.properties !== undefined && node.preserveUnknownFields !== true
    if (childNode === undefined && closed) return `${path}.${key}: field not declared in schema`
    const found = misfit(child, childNode, `${path}.${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

function misfitList(list: readonly unknown[], node: SchemaNode, path: string): string | undefined {
  const seen = new Set<string>()
  const keyed = node.listType === 'map' || node.listType === 'set'
  for (const [index, item] of list.entries()) {
    if (keyed) {
      const missing = node.listType === 'map' ? missingKey(item, node) : undefined
      if (missing !== undefined) {
        return `${path}: element ${index}: associative list with keys has an element that omits key field "${missing}" (and doesn't have default value)`
      }
      const element = itemElement(item, node)
      if (seen.has(element)) return `${path}: duplicate entries for key [${element.slice(2)}]`
      seen.add(element)
    }
    const found = misfit(item, node.items, `${path}[${index}]`)
    if (found !== undefined) return found
  }
  return undefined
}

/** The live value merged with the applied one; the live value itself if nothing changes. */
export function mergeTyped(live: unknown, applied: unknown, node: SchemaNode | undefined): unknown {
  if (live === undefined || live === null) return applied
  const granularity = granularityOf(applied, node)
  if (granularity === 'leaf' || granularityOf(live, node) !== granularity) {
    return jsonEqual(live, applied) ? live : applied
  }
  if (granularity === 'fields') {
    return mergeRecords(
      live as Readonly<Record<string, unknown>>,
      applied as Readonly<Record<string, unknown>>,
      node,
    )
  }
  return mergeLists(live as readonly unknown[], applied as readonly unknown[], node as SchemaNode)
}

function mergeRecords(
  live: Readonly<Record<string, unknown>>,
  applied: Readonly<Record<string, unknown>>,
  node: SchemaNode | undefined,
): unknown {
  let merged: Record<string, unknown> | undefined
  for (const [key, value] of Object.entries(applied)) {
    if (value === null) continue
    const next = mergeTyped(ownValue(live, key), value, childOf(node, key))
    if (next === ownValue(live, key)) continue
    merged ??= { ...live }
    setOwn(merged, key, next)
  }
  return merged ?? live
}

/** Items in the applied list get its order; new ones come last. */
function mergeLists(live: readonly unknown[], applied: readonly unknown[], node: SchemaNode): unknown {
  const byElement = new Map(live.map((item) => [itemElement(item, node), item]))
  const merged = applied.map((item) => mergeTyped(byElement.get(itemElement(item, node)), item, node.items))
  const named = new Set(applied.map((item) => itemElement(item, node)))
  const known = merged.filter((item) => byElement.has(itemElement(item, node)))
  const added = merged.filter((item) => !byElement.has(itemElement(item, node)))
  let next = 0
  const result = live.map((item) => (named.has(itemElement(item, node)) ? known[next++] : item))
  const same = added.length === 0 && result.every((item, index) => item === live[index])
  return same ? live : [...result, ...added]
}

/** Sets that decide what is removed when a manager applies less than before. */
export interface Ownership {
  /** What the manager applied last time. */
  readonly previous: FieldSet
  /** What it applies now. */
  readonly applied: FieldSet | undefined
  /** What others own. */
  readonly others: FieldSet | undefined
}

/** Removes what a manager no longer applies and nobody else owns. */
export function pruneUnapplied(value: unknown, node: SchemaNode | undefined, ownership: Ownership): unknown {
  const granularity = granularityOf(value, node)
  if (granularity === 'fields') {
    return pruneRecord(value as Readonly<Record<string, unknown>>, node, ownership)
  }
  if (granularity === 'leaf') return value
  return pruneList(value as readonly unknown[], node as SchemaNode, ownership)
}

const gone = Symbol('gone')

function pruneChild(
  value: unknown,
  element: string,
  node: SchemaNode | undefined,
  ownership: Ownership,
): unknown {
  const previous = ownValue(ownership.previous, element)
  if (previous === undefined) return value
  const applied = ownValue(ownership.applied, element)
  const others = ownValue(ownership.others, element)
  if (applied === undefined && others === undefined) return gone
  return pruneUnapplied(value, node, { previous, applied, others })
}

function pruneRecord(
  record: Readonly<Record<string, unknown>>,
  node: SchemaNode | undefined,
  ownership: Ownership,
): unknown {
  let kept: Record<string, unknown> | undefined
  for (const key of Object.keys(record)) {
    const next = pruneChild(ownValue(record, key), `f:${key}`, childOf(node, key), ownership)
    if (next === ownValue(record, key)) continue
    kept ??= { ...record }
    if (next === gone) delete kept[key]
    else setOwn(kept, key, next)
  }
  return kept ?? record
}

function pruneList(list: readonly unknown[], node: SchemaNode, ownership: Ownership): unknown {
  const kept = list
    .map((item) => pruneChild(item, itemElement(item, node), node.items, ownership))
    .filter((item) => item !== gone)
  return kept.length === list.length && kept.every((item, index) => item === list[index]) ? list : kept
}
