import { rfc3339 } from '@tenon/runtime'
import type { ManagedFieldsEntry } from '@tenon/api'
import type { ResourceDefinition, StoredObject } from '../../contract.ts'
import { type FieldSet, fieldSetOf, sortedSet, union } from './field-set.ts'

/** A field manager with its decoded set. */
export interface Owner {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string | undefined
  readonly time: string | undefined
  readonly fields: FieldSet
  /** The entry from which this owner was decoded, as long as nothing changed. */
  readonly entry: ManagedFieldsEntry | undefined
}

/** `apiVersion` of a definition, as in an entry. */
export function apiVersionOf(definition: ResourceDefinition): string {
  return definition.group === '' ? definition.version : `${definition.group}/${definition.version}`
}

const decoded = new WeakMap<ManagedFieldsEntry, Owner>()

/** Decodes entries; those without fields are dropped. */
export function ownersOf(entries: readonly ManagedFieldsEntry[] | undefined): readonly Owner[] {
  const owners: Owner[] = []
  for (const entry of entries ?? []) {
    let owner = decoded.get(entry)
    if (owner === undefined) {
      const fields = fieldSetOf(entry.fieldsV1)
      if (fields === undefined) continue
      owner = {
        manager: entry.manager ?? '',
        operation: entry.operation === 'Apply' ? 'Apply' : 'Update',
        apiVersion: entry.apiVersion ?? '',
        subresource: entry.subresource === '' ? undefined : entry.subresource,
        time: entry.time,
        fields,
        entry,
      }
      decoded.set(entry, owner)
    }
    owners.push(owner)
  }
  return owners
}

/** Whether the owner is the writer. */
export function isSameOwner(
  owner: Owner,
  identity: Pick<Owner, 'manager' | 'operation' | 'apiVersion' | 'subresource'>,
): boolean {
  return (
    owner.manager === identity.manager &&
    owner.operation === identity.operation &&
    owner.subresource === identity.subresource &&
    // An applier stays the same owner across versions.
    (identity.operation === 'Apply' || owner.apiVersion === identity.apiVersion)
  )
}

/** Above this number, the oldest owners by update are merged into one. */
const maxUpdateOwners = 10

const mergedOwner = 'ancient-changes'

function withinBound(owners: readonly Owner[]): readonly Owner[] {
  const updates = owners.filter((owner) => owner.operation === 'Update')
  const excess = updates.length - maxUpdateOwners
  if (excess <= 0) return owners
  const oldest = updates.sort(byTime).slice(0, excess + 1)
  const last = oldest.at(-1) as Owner
  const fields = oldest.map((owner) => owner.fields).reduce(union)
  const dropped = new Set(oldest)
  return [
    ...owners.filter((owner) => !dropped.has(owner)),
    { ...last, manager: mergedOwner, fields, entry: undefined },
  ]
}

function byTime(a: Owner, b: Owner): number {
  const [left, right] = [a.time ?? '', b.time ?? '']
  return left < right ? -1 : left > right ? 1 : 0
}

function byKey(a: Owner, b: Owner): number {
  if (a.operation !== b.operation) return a.operation < b.operation ? -1 : 1
  const time = byTime(a, b)
  if (time !== 0) return time
  const left = `${a.manager}\n${a.apiVersion}\n${a.subresource ?? ''}`
  const right = `${b.manager}\n${b.apiVersion}\n${b.subresource ?? ''}`
  return left < right ? -1 : left > right ? 1 : 0
}

/** The entries of owners, ordered by operation, time and name. */
export function entriesOf(owners: readonly Owner[]): readonly ManagedFieldsEntry[] {
  return [...withinBound(owners)].sort(byKey).map(entryOf)
}

function entryOf(owner: Owner): ManagedFieldsEntry {
  if (owner.entry !== undefined) return owner.entry
  const fields = sortedSet(owner.fields)
  const entry: ManagedFieldsEntry = {
    manager: owner.manager,
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(owner.time === undefined ? {} : { time: owner.time }),
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
    ...(owner.subresource === undefined ? {} : { subresource: owner.subresource }),
  }
  decoded.set(entry, { ...owner, fields, entry })
  return entry
}

/** The object with these managed fields; the field is removed if there are none. */
export function withEntries(object: StoredObject, entries: readonly ManagedFieldsEntry[]): StoredObject {
  if (entries.length > 0) return { ...object, metadata: { ...object.metadata, managedFields: entries } }
  if (object.metadata.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Time of an entry. */
export function entryTime(nowMs: number): string {
  return rfc3339(nowMs)
}

/** Fields of the server, which nobody owns. */
const systemMetadata = [
  'f:name',
  'f:namespace',
  'f:uid',
  'f:creationTimestamp',
  'f:deletionTimestamp',
  'f:deletionGracePeriodSeconds',
  'f:generation',
  'f:resourceVersion',
  'f:selfLink',
  'f:managedFields',
]

/**
 * A set without fields that cannot be owned by this write: system metadata, and status if it is a subresource (or
 * everything else when writing the status).
 */
export function ownable(
  set: FieldSet | undefined,
  definition: ResourceDefinition,
  subresource: string | undefined,
): FieldSet | undefined {
  if (set === undefined) return undefined
  const {
    '.': _self,
    'f:apiVersion': _apiVersion,
    'f:kind': _kind,
    ...rest
  } = set as Record<string, FieldSet>
  const kept: Record<string, FieldSet> = rest
  if (subresource === undefined && definition.subresources.includes('status')) delete kept['f:status']
  const metadata = kept['f:metadata']
  if (metadata !== undefined) {
    const own: Record<string, FieldSet> = { ...metadata }
    delete own['.']
    for (const field of systemMetadata) delete own[field]
    if (Object.keys(own).length === 0) delete kept['f:metadata']
    else kept['f:metadata'] = own
  }
  return Object.keys(kept).length === 0 ? undefined : kept
}
