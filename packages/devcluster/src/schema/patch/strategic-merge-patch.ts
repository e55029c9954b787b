import { isRecord, ownValue, setOwn } from '@tenon/api'
import type { SchemaNode, StoredObject } from '../../contract.ts'
import { childOf, jsonEqual } from '../shape-node.ts'

type Json = Readonly<Record<string, unknown>>

/** The result of a patch. */
export type PatchResult =
  | { readonly object: StoredObject; readonly error?: undefined }
  | { readonly error: string; readonly object?: undefined }

/** An invalid patch; the message is for the client. */
class PatchRefused extends Error {}

const deleteFromPrefix = '$deleteFromPrimitiveList/'
const orderPrefix = '$setElementOrder/'

/**
 * Kubernetes' strategic merge patch: lists with a merge key are merged by item, with the directives `$patch`,
 * `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder`. The input is not changed.
 */
export function strategicMergePatch(object: StoredObject, patch: unknown, schema: SchemaNode): PatchResult {
  if (!isRecord(patch)) return { error: 'the patch must be a JSON object' }
  try {
    return { object: mergeMap(object, patch, schema, '') as StoredObject }
  } catch (error) {
    if (error instanceof PatchRefused) return { error: error.message }
    throw error
  }
}

function mergeMap(target: Json, patch: Json, schema: SchemaNode | undefined, path: string): Json {
  const directive = patch['$patch']
  if (directive !== undefined) {
    const rest = withoutKey(patch, '$patch')
    if (directive === 'replace') return cleanMap(rest)
    if (directive === 'delete') return {}
    if (directive !== 'merge') throw new PatchRefused(`Unknown patch type found: ${String(directive)}`)
    return mergeMap(target, rest, schema, path)
  }
  const merged: Record<string, unknown> = retained(target, patch, path)
  for (const [key, value] of Object.entries(patch)) {
    if (key === '$retainKeys' || key.startsWith(orderPrefix)) continue
    if (key.startsWith(deleteFromPrefix)) deletePrimitives(merged, key.slice(deleteFromPrefix.length), value)
    else mergeField(merged, key, value, { schema, patch, path })
  }
  applyOrders(merged, target, patch, schema)
  return merged
}

interface FieldContext {
  readonly schema: SchemaNode | undefined
  readonly patch: Json
  readonly path: string
}

function mergeField(
  merged: Record<string, unknown>,
  key: string,
  value: unknown,
  context: FieldContext,
): void {
  const node = childOf(context.schema, key)
  const path = `${context.path}.${key}`
  if (value === null) {
    delete merged[key]
  } else if (isRecord(value)) {
    const current = ownValue(merged, key)
    if (value['$patch'] === 'delete') delete merged[key]
    else setOwn(merged, key, mergeMap(isRecord(current) ? current : {}, value, node, path))
  } else if (Array.isArray(value)) {
    setOwn(merged, key, mergeList(ownValue(merged, key), value, node, path))
  } else {
    setOwn(merged, key, value)
  }
}

function retained(target: Json, patch: Json, path: string): Record<string, unknown> {
  const keys = patch['$retainKeys']
  if (keys === undefined) return { ...target }
  if (!Array.isArray(keys)) throw new PatchRefused(`$retainKeys of ${path} must be a list`)
  const known = new Set<unknown>(keys)
  for (const key of Object.keys(patch)) {
    if (!key.startsWith('$') && ownValue(patch, key) !== null && !known.has(key)) {
      throw new PatchRefused('$retainKeys list must contain all the keys in the patch')
    }
  }
  return Object.fromEntries(Object.entries(target).filter(([key]) => known.has(key)))
}

function mergesItems(node: SchemaNode | undefined): boolean {
  return node?.patchStrategy?.split(',').includes('merge') ?? false
}

function mergeList(
  current: unknown,
  patch: readonly unknown[],
  node: SchemaNode | undefined,
  path: string,
): readonly unknown[] {
  const replace = patch.some(
    (item) => isRecord(item) && item['$patch'] === 'replace' && onlyDirective(item, node),
  )
  if (replace || !mergesItems(node)) return cleanList(patch.filter((item) => !isBareReplace(item)))
  const list: readonly unknown[] = Array.isArray(current) ? current : []
  if (node?.patchMergeKey === undefined) return mergeScalars(list, patch)
  return mergeItems(list, patch, { key: node.patchMergeKey, items: node.items, path })
}

function onlyDirective(item: Json, node: SchemaNode | undefined): boolean {
  return node?.patchMergeKey === undefined || ownValue(item, node.patchMergeKey) === undefined
}

function isBareReplace(item: unknown): boolean {
  return isRecord(item) && item['$patch'] === 'replace' && Object.keys(item).length === 1
}

function mergeScalars(list: readonly unknown[], patch: readonly unknown[]): readonly unknown[] {
  const merged = [...list]
  for (const item of patch) {
    if (!merged.some((known) => jsonEqual(known, item))) merged.push(item)
  }
  return merged
}

interface MergeKey {
  readonly key: string
  readonly items: SchemaNode | undefined
  readonly path: string
}

function mergeItems(list: readonly unknown[], patch: readonly unknown[], by: MergeKey): readonly unknown[] {
  let merged = [...list]
  for (const item of patch) {
    if (!isRecord(item)) throw new PatchRefused(`items of ${by.path} must be objects`)
    const keyValue = ownValue(item, by.key)
    if (keyValue === undefined) {
      throw new PatchRefused(`map: ${JSON.stringify(item)} does not contain declared merge key: ${by.key}`)
    }
    const same = (known: unknown): boolean => isRecord(known) && jsonEqual(ownValue(known, by.key), keyValue)
    if (item['$patch'] === 'delete') {
      merged = merged.filter((known) => !same(known))
      continue
    }
    const index = merged.findIndex(same)
    const known = merged[index]
    const result = mergeMap(isRecord(known) ? known : {}, item, by.items, by.path)
    if (index < 0) merged.push(result)
    else merged[index] = result
  }
  return merged
}

function deletePrimitives(merged: Record<string, unknown>, key: string, values: unknown): void {
  const current = ownValue(merged, key)
  if (!Array.isArray(current) || !Array.isArray(values)) return
  setOwn(
    merged,
    key,
    current.filter((item) => !values.some((value) => jsonEqual(value, item))),
  )
}

function applyOrders(
  merged: Record<string, unknown>,
  target: Json,
  patch: Json,
  schema: SchemaNode | undefined,
): void {
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(orderPrefix) || !Array.isArray(order)) continue
    const field = key.slice(orderPrefix.length)
    const list = ownValue(merged, field)
    if (!Array.isArray(list)) continue
    const live = ownValue(target, field)
    const mergeKey = childOf(schema, field)?.patchMergeKey
    setOwn(
      merged,
      field,
      ordered(list, order, Array.isArray(live) ? live : [], (item) =>
        canonical(mergeKey !== undefined && isRecord(item) ? ownValue(item, mergeKey) : item),
      ),
    )
  }
}

function canonical(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

/** Items in `order` get that order. Other items stay before the first listed item that came after them. */
function ordered(
  list: readonly unknown[],
  order: readonly unknown[],
  live: readonly unknown[],
  keyOf: (item: unknown) => string,
): readonly unknown[] {
  const rank = new Map(order.map((item, index) => [keyOf(item), index]))
  const place = new Map(live.map((item, index) => [keyOf(item), index]))
  const named = list.filter((item) => rank.has(keyOf(item)))
  named.sort((a, b) => (rank.get(keyOf(a)) ?? 0) - (rank.get(keyOf(b)) ?? 0))
  const serverOnly = list.filter((item) => !rank.has(keyOf(item)))
  const result: unknown[] = []
  let next = 0
  for (const item of named) {
    const itemPlace = place.get(keyOf(item)) ?? -1
    while (next < serverOnly.length && (place.get(keyOf(serverOnly[next])) ?? Number.MAX_VALUE) < itemPlace) {
      result.push(serverOnly[next++])
    }
    result.push(item)
  }
  return [...result, ...serverOnly.slice(next)]
}

/** Removes nulls and directives from a new part of the patch. */
function cleanMap(value: Json): Json {
  const clean: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    if (field === null || key.startsWith('$')) continue
    setOwn(clean, key, cleanValue(field))
  }
  return clean
}

function cleanList(list: readonly unknown[]): readonly unknown[] {
  return list
    .filter((item) => !(isRecord(item) && item['$patch'] === 'delete'))
    .map((item) => cleanValue(item))
}

function cleanValue(value: unknown): unknown {
  if (Array.isArray(value)) return cleanList(value)
  return isRecord(value) ? cleanMap(value) : value
}

function withoutKey(value: Json, dropped: string): Json {
  const { [dropped]: _, ...rest } = value
  return rest
}
