import { canonicalQuantity } from './quantity.ts'
import { propertiesOf, type ShapeNode } from './shape-node.ts'

/**
 * Brings decoded JSON into the form in which built-in kinds are stored: nulls are dropped and
 * quantities are text in canonical form. Answers the same value when it was so already.
 */
export function normalizeValue(value: unknown, node: ShapeNode): unknown {
  if (typeof value !== 'object' || value === null) {
    if (node.quantity !== true) return value
    if (typeof value === 'number') return canonicalQuantity(String(value))
    return typeof value === 'string' ? canonicalQuantity(value) : value
  }
  if (Array.isArray(value)) {
    return node.items === undefined || isPlain(node.items) ? value : normalizeList(value, node.items)
  }
  return node.type === 'any' ? value : normalizeRecord(value as Record<string, unknown>, node)
}

/** A scalar that is stored as it comes. */
function isPlain(node: ShapeNode): boolean {
  return node.type !== 'object' && node.type !== 'array' && node.quantity !== true
}

function normalizeList(list: readonly unknown[], items: ShapeNode): readonly unknown[] {
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    const next = normalizeValue(item, items)
    if (next === item) continue
    changed ??= [...list]
    changed[index] = next
  }
  return changed ?? list
}

function normalizeRecord(record: Record<string, unknown>, node: ShapeNode): Record<string, unknown> {
  const properties = propertiesOf(node)
  const values = node.additionalProperties
  if (node.properties === undefined && (values === undefined || isPlain(values))) return record
  let changed: Record<string, unknown> | undefined
  for (const key in record) {
    const value = record[key]
    const child: ShapeNode | undefined = properties[key] ?? values
    if (value === null && child?.type !== 'any') {
      changed ??= { ...record }
      delete changed[key]
    } else if (child !== undefined && !isPlain(child)) {
      const next = normalizeValue(value, child)
      if (next === value) continue
      changed ??= { ...record }
      changed[key] = next
    }
  }
  return changed ?? record
}
