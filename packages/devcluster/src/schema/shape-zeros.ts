import { isRecord, ownValue, setOwn } from '@tenon/api'
import { propertiesOf, type ShapeNode } from './shape-node.ts'

type Loose = Readonly<Record<string, unknown>>

/**
 * Normalizes zero values like the Go types of the API server: each is omitted or present as its type says, whatever the
 * client sent. Parts shared with `known`, a normalized value of the same field, are skipped. A status comes from a part
 * of the cluster and is not changed.
 */
export function withZeroValues(record: Loose, node: ShapeNode, known?: unknown, isRoot = true): Loose {
  const properties = propertiesOf(node)
  const values = node.additionalProperties
  if (node.properties === undefined && values?.type !== 'object') return record
  const before = isRecord(known) ? known : undefined
  let changed: Record<string, unknown> | undefined
  for (const key in record) {
    const value = ownValue(record, key)
    const child: ShapeNode | undefined = ownValue(properties, key) ?? values
    if (child === undefined || (isRoot && key === 'status')) continue
    if (node.zeros?.dropped.has(key) === true && isZero(value, child)) {
      changed ??= { ...record }
      delete changed[key]
      continue
    }
    const next = inside(value, child, ownValue(before, key))
    if (next === value) continue
    changed ??= { ...record }
    setOwn(changed, key, next)
  }
  return withKept(changed ?? record, node)
}

/** Adds fields that are always serialized. */
function withKept(record: Loose, node: ShapeNode): Loose {
  const missing = node.zeros?.kept.filter(([field]) => ownValue(record, field) === undefined) ?? []
  if (missing.length === 0) return record
  const filled: Record<string, unknown> = { ...record }
  for (const [field, zero] of missing) {
    const child: ShapeNode | undefined = ownValue(propertiesOf(node), field)
    setOwn(filled, field, zero === 'struct' ? withZeroValues({}, child ?? node, undefined, false) : zero)
  }
  return filled
}

function inside(value: unknown, node: ShapeNode, known: unknown): unknown {
  if (typeof value !== 'object' || value === null || value === known) return value
  return Array.isArray(value) ? eachItem(value, node) : withZeroValues(value as Loose, node, known, false)
}

function eachItem(list: readonly unknown[], node: ShapeNode): readonly unknown[] {
  const items = node.items
  if (items?.type !== 'object') return list
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    if (!isRecord(item)) continue
    const next = withZeroValues(item, items, undefined, false)
    if (next === item) continue
    changed ??= [...list]
    changed[index] = next
  }
  return changed ?? list
}

/** Whether a value is the zero value of its type; values of another type are left to validation. */
function isZero(value: unknown, node: ShapeNode): boolean {
  switch (node.type) {
    case 'array':
      return Array.isArray(value) && value.length === 0
    case 'object':
      return isRecord(value) && Object.keys(value).length === 0
    case 'string':
      return value === ''
    case 'integer':
    case 'number':
      return value === 0
    case 'boolean':
      return value === false
    case 'any':
      return false
  }
}
