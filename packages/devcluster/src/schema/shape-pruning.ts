import { ownValue, setOwn } from '@tenon/api'
import type { SchemaNode } from '../contract.ts'
import { propertiesOf } from './shape-node.ts'

/**
 * Removes unknown fields and appends their paths (`spec.foo`) to `unknown`. Returns the same value if there are none.
 * Parts shared with `known`, a pruned value of the same field, are skipped.
 */
export function pruneValue(
  value: unknown,
  node: SchemaNode,
  path: string,
  unknown: string[],
  known?: unknown,
): unknown {
  if (typeof value !== 'object' || value === null || value === known) return value
  if (Array.isArray(value))
    return node.items === undefined ? value : pruneList(value, node.items, path, unknown)
  return pruneRecord(value as Record<string, unknown>, node, path, unknown, fieldsOf(known))
}

function fieldsOf(known: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof known === 'object' && known !== null ? (known as Record<string, unknown>) : undefined
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
  known: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const properties = propertiesOf(node)
  const values = node.additionalProperties
  if (node.properties === undefined && values === undefined) return record
  let pruned: Record<string, unknown> | undefined
  for (const key in record) {
    const child = Object.hasOwn(properties, key) ? ownValue(properties, key) : values
    const value = ownValue(record, key)
    if (child === undefined) {
      if (node.preserveUnknownFields === true) continue
      unknown.push(path === '' ? key : `${path}.${key}`)
      pruned ??= { ...record }
      delete pruned[key]
    } else if (typeof value === 'object' && value !== null && value !== ownValue(known, key)) {
      const kept = pruneValue(
        value,
        child,
        path === '' ? key : `${path}.${key}`,
        unknown,
        ownValue(known, key),
      )
      if (kept === value) continue
      pruned ??= { ...record }
      setOwn(pruned, key, kept)
    }
  }
  return pruned ?? record
}
