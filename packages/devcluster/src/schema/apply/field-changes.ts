import { ownValue, setOwn } from '@tenon/api'
import type { SchemaNode } from '../../contract.ts'
import { childOf, jsonEqual, type ShapeNode } from '../shape-node.ts'
import { type FieldSet, leaf } from './field-set.ts'
import { granularityOf, itemElement } from './list-identity.ts'

/** Fields that an object gained or changed, and fields that it lost. */
export interface FieldChanges {
  readonly changed: FieldSet | undefined
  readonly removed: FieldSet | undefined
}

type Mode = 'update' | 'apply'

/**
 * The fields of a value. In `update` mode new maps and lists are members themselves; in apply only leaves and list
 * items.
 */
export function fieldsOf(value: unknown, node: SchemaNode | undefined, mode: Mode): FieldSet {
  switch (granularityOf(value, node)) {
    case 'leaf':
      return leaf
    case 'fields':
      return fieldsOfRecord(value as Readonly<Record<string, unknown>>, node, mode)
    case 'keyed':
    case 'set':
      return fieldsOfList(value as readonly unknown[], node as SchemaNode, mode)
  }
}

function fieldsOfRecord(
  record: Readonly<Record<string, unknown>>,
  node: ShapeNode | undefined,
  mode: Mode,
): FieldSet {
  const set: Record<string, FieldSet> = {}
  if (mode === 'update' && node?.alwaysPresent !== true) set['.'] = leaf
  let empty = true
  for (const key in record) {
    const value = ownValue(record, key)
    if (value === undefined || value === null) continue
    setOwn(set, `f:${key}`, fieldsOf(value, childOf(node, key), mode))
    empty = false
  }
  return empty ? leaf : set
}

function fieldsOfList(list: readonly unknown[], node: SchemaNode, mode: Mode): FieldSet {
  if (list.length === 0) return leaf
  const set: Record<string, FieldSet> = {}
  if (mode === 'update' && (node as ShapeNode).alwaysPresent !== true) set['.'] = leaf
  for (const item of list) setOwn(set, itemElement(item, node), itemFields(item, node.items, mode))
  return set
}

/** An item is always a member itself. */
function itemFields(item: unknown, node: SchemaNode | undefined, mode: Mode): FieldSet {
  const fields = fieldsOf(item, node, mode)
  return fields === leaf || '.' in fields ? fields : { '.': leaf, ...fields }
}

/** Collects changes below one path; children that are equal are skipped. */
class Changes {
  changed: Record<string, FieldSet> | undefined
  removed: Record<string, FieldSet> | undefined

  visit(element: string, before: unknown, after: unknown, node: SchemaNode | undefined): void {
    if (before === after) return
    const found = changesOf(before, after, node)
    if (found.changed !== undefined) {
      this.changed ??= {}
      setOwn(this.changed, element, found.changed)
    }
    if (found.removed !== undefined) {
      this.removed ??= {}
      setOwn(this.removed, element, found.removed)
    }
  }
}

const nothing: FieldChanges = { changed: undefined, removed: undefined }
const wholeChanged: FieldChanges = { changed: leaf, removed: undefined }

/** Compares two values field by field. */
export function changesOf(before: unknown, after: unknown, node: SchemaNode | undefined): FieldChanges {
  if (before === after) return nothing
  if (after === undefined || after === null) {
    return before === undefined || before === null
      ? nothing
      : { changed: undefined, removed: fieldsOf(before, node, 'update') }
  }
  if (before === undefined || before === null) {
    return { changed: fieldsOf(after, node, 'update'), removed: undefined }
  }
  const granularity = granularityOf(after, node)
  if (granularity === 'leaf' || granularityOf(before, node) !== granularity) {
    return jsonEqual(before, after) ? nothing : wholeChanged
  }
  const changes = new Changes()
  if (granularity === 'fields') {
    compareRecords(before as Record<string, unknown>, after as Record<string, unknown>, node, changes)
  } else {
    compareLists(before as readonly unknown[], after as readonly unknown[], node as SchemaNode, changes)
  }
  return changes
}

function compareRecords(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  node: SchemaNode | undefined,
  changes: Changes,
): void {
  for (const key in after) {
    const value = ownValue(after, key)
    const old = ownValue(before, key)
    if (value !== old) changes.visit(`f:${key}`, old, value, childOf(node, key))
  }
  for (const key in before) {
    if (ownValue(after, key) === undefined)
      changes.visit(`f:${key}`, ownValue(before, key), undefined, childOf(node, key))
  }
}

function compareLists(
  before: readonly unknown[],
  after: readonly unknown[],
  node: SchemaNode,
  changes: Changes,
): void {
  if (sameOrder(before, after, node, changes)) return
  const old = new Map(before.map((item) => [itemElement(item, node), item]))
  for (const item of after) {
    const element = itemElement(item, node)
    changes.visit(element, old.get(element), item, node.items)
    old.delete(element)
  }
  for (const [element, item] of old) changes.visit(element, item, undefined, node.items)
}

/** The usual case, lists in the same order, needs no index. */
function sameOrder(
  before: readonly unknown[],
  after: readonly unknown[],
  node: SchemaNode,
  changes: Changes,
): boolean {
  if (before.length !== after.length) return false
  for (let index = 0; index < after.length; index++) {
    if (before[index] === after[index]) continue
    if (itemElement(before[index], node) !== itemElement(after[index], node)) return false
  }
  for (let index = 0; index < after.length; index++) {
    if (before[index] === after[index]) continue
    changes.visit(itemElement(after[index], node), before[index], after[index], node.items)
  }
  return true
}
