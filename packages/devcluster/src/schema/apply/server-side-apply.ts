import type { ResourceDefinition, StoredObject } from '../../contract.ts'
import { normalizeValue } from '../shape-normalizing.ts'
import { changesOf, fieldsOf } from './field-changes.ts'
import { type FieldSet, intersection, pathsOf, subtract, union } from './field-set.ts'
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
import { mergeTyped, misfit, pruneUnapplied } from './typed-merge.ts'

/** The input of an apply. */
export interface ApplyInput {
  /** The stored object; undefined if the apply creates it. */
  readonly live: StoredObject | undefined
  /** The configuration of the client, without defaults. */
  readonly applied: StoredObject
  readonly manager: string
  readonly force: boolean
  readonly definition: ResourceDefinition
  readonly subresource?: string
  readonly nowMs: number
}

/** A field that another manager owns with another value. */
export interface ApplyConflict {
  readonly manager: string
  /** `.spec.replicas` */
  readonly field: string
  /** `conflict with "kubectl" using apps/v1`, as the API server words it. */
  readonly message: string
}

/** The result of an apply. */
export type ApplyResult =
  | { readonly kind: 'applied'; readonly object: StoredObject }
  | { readonly kind: 'conflict'; readonly conflicts: readonly ApplyConflict[] }
  | { readonly kind: 'invalid'; readonly message: string }

/**
 * Server-side apply: merges a configuration into the live object by ownership. The result has no defaults yet; it is
 * the live object itself if nothing changes.
 */
export function applyServerSide(input: ApplyInput): ApplyResult {
  const invalid = refusal(input)
  if (invalid !== undefined) return { kind: 'invalid', message: invalid }
  const { definition, subresource } = input
  // Quantities of the live object are canonical, so other spellings are no difference.
  const applied = normalizeValue(input.applied, definition.schema) as StoredObject
  const fields = ownable(fieldsOf(applied, definition.schema, 'apply'), definition, subresource)
  const normal = { ...input, applied }
  return input.live === undefined ? created(normal, fields) : updated(normal, input.live, fields)
}

function refusal({ applied, definition }: ApplyInput): string | undefined {
  if (applied.metadata.managedFields !== undefined) return 'metadata.managedFields must be nil'
  const words = misfit(applied, definition.schema)
  if (words === undefined) return undefined
  const { namespace = '', name } = applied.metadata
  return `failed to create typed patch object (${namespace}/${name}; ${applied.apiVersion}, Kind=${applied.kind}): ${words}`
}

function identityOf({
  manager,
  definition,
  subresource,
}: ApplyInput): Omit<Owner, 'fields' | 'time' | 'entry'> {
  return { manager, operation: 'Apply', apiVersion: apiVersionOf(definition), subresource }
}

function created(input: ApplyInput, fields: FieldSet | undefined): ApplyResult {
  if (fields === undefined) return { kind: 'applied', object: input.applied }
  const owner: Owner = { ...identityOf(input), time: entryTime(input.nowMs), fields, entry: undefined }
  return { kind: 'applied', object: withEntries(input.applied, entriesOf([owner])) }
}

function updated(input: ApplyInput, live: StoredObject, fields: FieldSet | undefined): ApplyResult {
  const { definition } = input
  const identity = identityOf(input)
  const owners = liveOwners(live, definition)
  const previous = owners.find((owner) => isSameOwner(owner, identity))
  const others = owners.filter((owner) => owner !== previous)
  const merged = mergeTyped(live, withoutSystemFields(input.applied, live), definition.schema)
  const result =
    previous === undefined
      ? merged
      : pruneUnapplied(merged, definition.schema, {
          previous: previous.fields,
          applied: fields,
          others: others.length === 0 ? undefined : others.map((owner) => owner.fields).reduce(union),
        })
  const { changed, removed } = changesOf(live, result, definition.schema)
  const conflicts = changed === undefined ? [] : conflictsOf(others, changed)
  if (conflicts.length > 0 && !input.force) return { kind: 'conflict', conflicts }
  const kept = keptOwners(others, changed, removed)
  const unchangedFields = previous !== undefined && fields !== undefined && sameSet(previous.fields, fields)
  if (result === live && unchangedFields && kept.every((owner) => others.includes(owner))) {
    return { kind: 'applied', object: live }
  }
  const own: Owner[] =
    fields === undefined ? [] : [{ ...identity, time: entryTime(input.nowMs), fields, entry: undefined }]
  return { kind: 'applied', object: withEntries(result as StoredObject, entriesOf([...kept, ...own])) }
}

/** An object without managed fields counts as written by one owner before the first apply. */
function liveOwners(live: StoredObject, definition: ResourceDefinition): readonly Owner[] {
  const owners = ownersOf(live.metadata.managedFields)
  if (owners.length > 0) return owners
  const fields = ownable(fieldsOf(live, definition.schema, 'update'), definition, undefined)
  if (fields === undefined) return []
  return [
    {
      manager: 'before-first-apply',
      operation: 'Update',
      apiVersion: apiVersionOf(definition),
      subresource: undefined,
      time: undefined,
      fields,
      entry: undefined,
    },
  ]
}

/** Identity fields are not applied, as the API server checks them. */
function withoutSystemFields(applied: StoredObject, live: StoredObject): StoredObject {
  const {
    uid: _uid,
    resourceVersion: _version,
    creationTimestamp: _created,
    generation: _generation,
    ...metadata
  } = applied.metadata
  return { ...applied, apiVersion: live.apiVersion, kind: live.kind, metadata }
}

function conflictsOf(others: readonly Owner[], changed: FieldSet): readonly ApplyConflict[] {
  const conflicts: ApplyConflict[] = []
  for (const owner of others) {
    const common = intersection(owner.fields, changed)
    if (common === undefined) continue
    for (const field of pathsOf(common)) {
      conflicts.push({ manager: owner.manager, field, message: conflictMessage(owner) })
    }
  }
  return conflicts
}

function conflictMessage(owner: Owner): string {
  const subresource =
    owner.subresource === undefined ? '' : ` with subresource ${JSON.stringify(owner.subresource)}`
  const manager = `conflict with ${JSON.stringify(owner.manager)}${subresource}`
  if (owner.operation === 'Apply') return manager
  return `${manager} using ${owner.apiVersion}${owner.time === undefined ? '' : ` at ${owner.time}`}`
}

function keptOwners(
  others: readonly Owner[],
  changed: FieldSet | undefined,
  removed: FieldSet | undefined,
): readonly Owner[] {
  return others.flatMap((owner) => {
    let fields: FieldSet | undefined = owner.fields
    if (changed !== undefined) fields = subtract(fields, changed)
    if (fields !== undefined && removed !== undefined) fields = subtract(fields, removed)
    if (fields === undefined) return []
    return fields === owner.fields ? [owner] : [{ ...owner, fields, entry: undefined }]
  })
}

function sameSet(a: FieldSet, b: FieldSet): boolean {
  return subtract(a, b) === undefined && subtract(b, a) === undefined
}

/** The message of a 409: one line, or a list for several conflicts. */
export function applyConflictMessage(conflicts: readonly ApplyConflict[]): string {
  const first = conflicts[0]
  if (conflicts.length === 1 && first !== undefined)
    return `Apply failed with 1 conflict: ${first.message}: ${first.field}`
  const byOwner = new Map<string, string[]>()
  for (const { message, field } of conflicts) {
    const fields = byOwner.get(message)
    if (fields === undefined) byOwner.set(message, [field])
    else fields.push(field)
  }
  const lines = [...byOwner].map(([message, fields]) =>
    fields.length === 1
      ? `${message}: ${fields[0]}`
      : [`${message}:`, ...fields.map((field) => `- ${field}`)].join('\n'),
  )
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}
