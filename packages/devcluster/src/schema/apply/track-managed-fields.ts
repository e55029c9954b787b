import { isRecord, type ManagedFieldsEntry } from '@tenon/api'
import type { ResourceDefinition, StoredObject } from '../../contract.ts'
import { changesOf } from './field-changes.ts'
import { type FieldSet, subtract, union } from './field-set.ts'
import {
  apiVersionOf,
  entriesOf,
  entryTime,
  isSameOwner,
  type Owner,
  ownable,
  ownersOf,
  withEntries,
} from './managed-entries.ts'

/** A write whose field ownership is recorded. */
export interface TrackInput {
  /** The stored object; undefined for a creation. */
  readonly before: StoredObject | undefined
  /** The object to store, with defaults. */
  readonly after: StoredObject
  readonly manager: string
  readonly definition: ResourceDefinition
  readonly subresource?: string
  readonly nowMs: number
}

/**
 * Records ownership of a write that is not a server-side apply: the manager owns the fields that it changed, and
 * removed fields lose their owners. An empty list of managed fields in `after` resets them.
 */
export function trackManagedFields(input: TrackInput): StoredObject {
  const { before, after, definition, subresource } = input
  const given = after.metadata.managedFields
  if (isReset(given) && before?.metadata.managedFields !== undefined) return withEntries(after, [])
  const entries = given === undefined || isReset(given) ? before?.metadata.managedFields : given
  const changes = changesOf(before ?? {}, after, definition.schema)
  const changed = ownable(changes.changed, definition, subresource)
  const removed = ownable(changes.removed, definition, subresource)
  if (changed === undefined && removed === undefined) {
    return given === entries ? after : withEntries(after, entries ?? [])
  }
  const owners = nextOwners(ownersOf(entries), changed, removed, input)
  return withEntries(after, entriesOf(owners))
}

function isReset(entries: readonly ManagedFieldsEntry[] | undefined): boolean {
  if (entries === undefined) return false
  return (
    entries.length === 0 ||
    (entries.length === 1 && isRecord(entries[0]) && Object.keys(entries[0]).length === 0)
  )
}

function nextOwners(
  owners: readonly Owner[],
  changed: FieldSet | undefined,
  removed: FieldSet | undefined,
  input: TrackInput,
): readonly Owner[] {
  const identity = {
    manager: input.manager,
    operation: 'Update' as const,
    apiVersion: apiVersionOf(input.definition),
    subresource: input.subresource,
  }
  const next: Owner[] = []
  let own: Owner | undefined
  for (const owner of owners) {
    let fields: FieldSet | undefined = owner.fields
    if (removed !== undefined) fields = subtract(fields, removed)
    if (isSameOwner(owner, identity)) {
      own = fields === undefined ? undefined : { ...owner, fields }
      continue
    }
    if (fields !== undefined && changed !== undefined) fields = subtract(fields, changed)
    if (fields === undefined) continue
    next.push(fields === owner.fields ? owner : { ...owner, fields, entry: undefined })
  }
  const ownBefore = owners.find((owner) => isSameOwner(owner, identity))
  const fields = own === undefined ? changed : changed === undefined ? own.fields : union(own.fields, changed)
  if (fields === undefined) return next
  // If the same fields get other values, only the time changes.
  if (ownBefore !== undefined && fields === ownBefore.fields && changed === undefined)
    return [...next, ownBefore]
  return [...next, { ...identity, time: entryTime(input.nowMs), fields, entry: undefined }]
}
