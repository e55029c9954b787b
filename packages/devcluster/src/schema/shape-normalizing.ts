import { canonicalQuantity, ownValue, setOwn } from '@tenon/api'
import { propertiesOf, type ShapeNode } from './shape-node.ts'

/**
 * Normalizes decoded JSON like built-in kinds in storage: nulls are removed and quantities are canonical text. Returns
 * the same value if it is normalized. Parts shared with `known`, a normalized value of the same field, are skipped.
 */
export function normalizeValue(value: unknown, node: ShapeNode, known?: unknown): unknown {
  if (value === known) return value
  if (typeof value !== 'object' || value === null) {
    if (node.quantity !== true) return value
    if (typeof value === 'number') return canonicalQuantity(String(value))
    return typeof value === 'string' ? canonicalQuantity(value) : value
  }
  if (Array.isArray(value)) {
    if (node.items === undefined) return value
    if (!isPlain(node.items)) return normalizeList(value, node.items)
    return node.items.type === 'string' && value.includes(null)
      ? value.map((item: unknown) => item ?? '')
      : value
  }
  if (node.type === 'any') return value
  const fields = typeof known === 'object' && known !== null ? (known as Record<string, unknown>) : undefined
  return normalizeRecord(value as Record<string, unknown>, node, fields)
}

/** A null in a map of texts is an empty text. */
function withoutNulls(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, value ?? '']))
}

/** Whether scalars of this node are stored unchanged. */
function isPlain(node: ShapeNode): boolean {
  return node.type !== 'object' && node.type !== 'array' && node.quantity !== true
}

function normalizeList(list: readonly unknown[], items: ShapeNode): readonly unknown[] {
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    // A null item is an empty struct.
    const next = item === null && items.type === 'object' ? {} : normalizeValue(item, items)
    if (next === item) continue
    changed ??= [...list]
    changed[index] = next
  }
  return changed ?? list
}

function normalizeRecord(
  record: Record<string, unknown>,
  node: ShapeNode,
  known: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const properties = propertiesOf(node)
  const values = node.additionalProperties
  if (node.properties === undefined && (values === undefined || isPlain(values))) {
    return values?.type === 'string' && Object.values(record).includes(null) ? withoutNulls(record) : record
  }
  let changed: Record<string, unknown> | undefined
  for (const key in record) {
    const value = ownValue(record, key)
    const child: ShapeNode | undefined = ownValue(properties, key) ?? values
    if (value === null && child?.type !== 'any') {
      changed ??= { ...record }
      delete changed[key]
    } else if (child !== undefined && !isPlain(child)) {
      const next = normalizeValue(value, child, ownValue(known, key))
      if (next === value) continue
      changed ??= { ...record }
      setOwn(changed, key, next)
    }
  }
  return changed ?? record
}
