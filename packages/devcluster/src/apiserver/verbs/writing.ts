import { ownValue } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { FieldError, StoredObject } from '../../contract.ts'
import { decodingError, trackManagedFields } from '../../schema/index.ts'
import { keyOf } from '../../storage/index.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { withoutEmpty } from './metadata.ts'
import type { Served } from '../kinds/registry.ts'
import { badRequest, invalid, type Subject } from '../http/status.ts'

/** A served resource for error messages. */
export function subjectOf(served: Served): Subject {
  return served.definition
}

/** The stored object in the served version; `undefined` if there is none. */
export function readObject(ctx: ServerContext, served: Served, key: ObjectKey): StoredObject | undefined {
  const stored = ctx.store.collection(served.collection).get(storageKey(served, key))
  return stored === undefined ? undefined : served.view(stored)
}

/** The key of an object in its collection. */
export function storageKey(served: Served, key: ObjectKey): string {
  return keyOf(served.definition.namespaced ? key.namespace : undefined, key.name)
}

/**
 * Writes an object unless it is a dry run.
 * @returns the stored object in the served version.
 */
export function commit(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  options: WriteOptions,
): StoredObject {
  if (options.dryRun) return object
  const key = storageKey(served, { namespace: object.metadata.namespace, name: object.metadata.name })
  const collection = ctx.store.collection(served.collection)
  return served.view(ctx.store.put(collection, key, served.toStored(object)))
}

/** Checks that a body is an object of the served kind. */
export function checkType(served: Served, object: StoredObject): void {
  const { kind } = served.definition
  if (object.kind === kind && object.apiVersion === served.apiVersion) return
  throw badRequest(
    `the object provided (${object.apiVersion ?? ''}, Kind=${object.kind ?? ''}) does not match the expected object (${served.apiVersion}, Kind=${kind})`,
  )
}

/** The namespace of body and request, which must be equal. */
export function agreedNamespace(
  served: Served,
  asked: string | undefined,
  object: StoredObject,
): string | undefined {
  if (!served.definition.namespaced) return undefined
  const stated = object.metadata?.namespace
  if (asked !== undefined && stated !== undefined && stated !== '' && stated !== asked)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  const namespace = asked ?? stated
  return namespace === undefined || namespace === '' ? 'default' : namespace
}

/** Drops unknown fields, and refuses or warns as requested. `old` is the stored object, if any. */
export function pruned(
  served: Served,
  object: StoredObject,
  options: WriteOptions,
  old?: StoredObject,
): StoredObject {
  const result = served.definition.prune(object, old)
  if (result.unknownFields.length === 0) return result.object
  const complaints = result.unknownFields.map((field) => `unknown field "${field}"`)
  if (options.fieldValidation === 'Strict')
    throw badRequest(
      `${served.definition.kind} in version "${served.definition.version}" cannot be handled as a ${served.definition.kind}: strict decoding error: ${complaints.join(', ')}`,
    )
  if (options.fieldValidation === 'Warn') options.warnings.push(...complaints)
  return result.object
}

/** Throws 400 for a wrong type in a built-in kind. */
export function refuseUnreadable(served: Served, errors: readonly FieldError[]): void {
  const unreadable = served.crdName === undefined ? decodingError(served.definition, errors) : undefined
  if (unreadable !== undefined) throw badRequest(unreadable)
}

/** Throws if there are errors: 400 for a wrong type in a built-in kind, else 422. */
export function refuseInvalid(served: Served, name: string, errors: readonly FieldError[]): void {
  if (errors.length === 0) return
  refuseUnreadable(served, errors)
  throw invalid(subjectOf(served), name, errors)
}

/** The same object with other metadata. */
export function withMetadata(
  object: StoredObject,
  metadata: Partial<StoredObject['metadata']>,
): StoredObject {
  return { ...object, metadata: withoutEmpty({ ...object.metadata, ...metadata }) }
}

/** The same object with a field set, or removed when the value is `undefined`. */
export function withField(object: StoredObject, field: string, value: unknown): StoredObject {
  if (value !== undefined) return { ...object, [field]: value }
  if (ownValue(object, field) === undefined) return object
  const { [field]: _dropped, ...rest } = object
  return rest as StoredObject
}

/** A write whose field ownership is recorded. */
export interface TrackedWrite {
  readonly served: Served
  readonly before: StoredObject | undefined
  readonly after: StoredObject
  readonly subresource?: string | undefined
}

/** Records field ownership after a write. */
export function tracked(ctx: ServerContext, write: TrackedWrite, options: WriteOptions): StoredObject {
  const { served, before, after, subresource } = write
  if (!ctx.recordsOwners) return after
  return trackManagedFields({
    before,
    after,
    manager: options.manager,
    definition: served.definition,
    ...(subresource === undefined ? {} : { subresource }),
    nowMs: ctx.clock.now(),
  })
}

/** The current time as in metadata. */
export function timestamp(ctx: ServerContext): string {
  return rfc3339(ctx.clock.now())
}
