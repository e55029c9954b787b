import { ownValue } from '@tenon/api'
import type { SchemaNode } from '../contract.ts'
import type { ZeroValues } from './shapes/zero-values.ts'

/** A schema node with details of built-in kinds. */
export interface ShapeNode extends SchemaNode {
  /** Whether the field is always serialized; field ownership then skips it. */
  readonly alwaysPresent?: boolean
  /** Whether the string is a quantity (`500m`); numbers are accepted as well. */
  readonly quantity?: boolean
  /** Which fields of the struct are serialized with their zero value. */
  readonly zeros?: ZeroValues
}

const noProperties: Readonly<Record<string, SchemaNode>> = {}
const resolved = new WeakMap<SchemaNode, Readonly<Record<string, SchemaNode>>>()

/** The fields of an object node, resolved once. */
export function propertiesOf(node: SchemaNode): Readonly<Record<string, SchemaNode>> {
  const properties = node.properties
  if (properties === undefined) return noProperties
  if (typeof properties !== 'function') return properties
  let value = resolved.get(node)
  if (value === undefined) {
    value = properties()
    resolved.set(node, value)
  }
  return value
}

/** The node of field or map entry `key`; undefined for an unknown field. */
export function childOf(node: SchemaNode | undefined, key: string): SchemaNode | undefined {
  if (node === undefined) return undefined
  if (node.properties !== undefined) {
    const properties = propertiesOf(node)
    if (Object.hasOwn(properties, key)) return ownValue(properties, key)
  }
  return node.additionalProperties
}

/** Equality of JSON values; absent and undefined are equal. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) return Array.isArray(b) && arraysEqual(a, b)
  if (Array.isArray(b)) return false
  return recordsEqual(a as Record<string, unknown>, b as Record<string, unknown>)
}

function arraysEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) {
    if (!jsonEqual(a[index], b[index])) return false
  }
  return true
}

function recordsEqual(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  let known = 0
  for (const key in a) {
    const value = ownValue(a, key)
    if (value === undefined) continue
    if (!jsonEqual(value, ownValue(b, key))) return false
    known++
  }
  for (const key in b) {
    if (ownValue(b, key) !== undefined) known--
  }
  return known === 0
}
