import { isRecord, ownValue } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { SchemaNode } from '../../contract.ts'
import { propertiesOf } from '../shape-node.ts'

/** How the parts of a value are owned. */
export type Granularity = 'leaf' | 'fields' | 'keyed' | 'set'

/** Whether a value is owned as a whole, by field, by keyed item or by set member. */
export function granularityOf(value: unknown, node: SchemaNode | undefined): Granularity {
  if (typeof value !== 'object' || value === null) return 'leaf'
  if (Array.isArray(value)) {
    if (node?.listType === 'map') return 'keyed'
    return node?.listType === 'set' ? 'set' : 'leaf'
  }
  return node?.mapType === 'atomic' ? 'leaf' : 'fields'
}

const mapKeys = perObject((node: SchemaNode): readonly string[] => [...(node.listMapKeys ?? [])].sort())

/** Missing keys of an item have the defaults of its type. */
function keyValue(item: Readonly<Record<string, unknown>>, key: string, node: SchemaNode): unknown {
  const value = ownValue(item, key)
  if (value !== undefined) return value
  return node.items === undefined ? undefined : ownValue(propertiesOf(node.items), key)?.default
}

/** The path element of a list item (`k:{"name":"web"}` or `v:"a"`). */
export function itemElement(item: unknown, node: SchemaNode): string {
  if (node.listType === 'set') return `v:${JSON.stringify(item)}`
  const keys = mapKeys(node)
  if (!isRecord(item)) return `v:${JSON.stringify(item)}`
  let text = ''
  for (const key of keys) {
    const value = keyValue(item, key, node)
    if (value === undefined) continue
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${JSON.stringify(value)}`
  }
  return `k:{${text}}`
}

/** The required key that an item lacks; undefined if it has all. */
export function missingKey(item: unknown, node: SchemaNode): string | undefined {
  if (!isRecord(item)) return mapKeys(node)[0]
  const keys = mapKeys(node)
  const missing = keys.filter((key) => keyValue(item, key, node) === undefined)
  // Some keys of a list may be optional, but an item without any key has no identity.
  return missing.length === keys.length ? missing[0] : undefined
}
