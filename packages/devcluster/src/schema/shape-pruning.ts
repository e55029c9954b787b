import type { SchemaNode } from '../contract.ts'
import { propertiesOf } from './shape-node.ts'

/**
 * Drops fields the shape does not know and pushes their paths (`spec.foo`) to `unknown`. Answers the
 * same value when nothing had to go.
 */
export function pruneValue(value: unknown, node: SchemaNode, path: string, unknown: string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value))
    return node.items === undefined ? value : pruneList(value, node.items, path, unknown)
  return pruneRecord(value as Record<string, unknown>, node, path, unknown)
}

function pruneList(list: unknown[], items: SchemaNode, path: string, unknown: string[]): unknown[] {
  let pruned: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    if (typeof item !== 'object' || item === null) continue
    const kept = pruneValue(item, items, `${path}[${index}]`, unknown)
    if (kept === item) continue
    pruned ??= [...list]
    pruned[index] = kept
  }
  return pruned ?? list
}

function pruneRecord(
  record: Record<string, unknown>,
  node: SchemaNode,
  path: string,
  unknown: string[],
): Record<string, unknown> {
  const properties = propertiesOf(node)
  const values = node.additionalProperties
  if (node.properties === undefined && values === undefined) return record
  let pruned: Record<string, unknown> | undefined
  for (const key in record) {
    const child = Object.hasOwn(properties, key) ? properties[key] : values
    const value = record[key]
    if (child === undefined) {
      if (node.preserveUnknownFields === true) continue
      unknown.push(path === '' ? key : `${path}.${key}`)
      pruned ??= { ...record }
      delete pruned[key]
    } else if (typeof value === 'object' && value !== null) {
      const kept = pruneValue(value, child, path === '' ? key : `${path}.${key}`, unknown)
      if (kept === value) continue
      pruned ??= { ...record }
      pruned[key] = kept
    }
  }
  return pruned ?? record
}
