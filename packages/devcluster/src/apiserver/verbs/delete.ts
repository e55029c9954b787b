import type { Status } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { LocalDeleteOptions, StoredObject } from '../../contract.ts'
import { validated } from '../admission/index.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { afterCustomResourceRemoved, deleteCustomResources } from '../kinds/custom-resources.ts'
import { withoutEmpty } from './metadata.ts'
import type { Served } from '../kinds/registry.ts'
import { conflict, deletedStatus, forbidden, notFound } from '../http/status.ts'
import { commit, readObject, storageKey, subjectOf, withMetadata } from './writing.ts'

const foreground = 'foregroundDeletion'
const orphan = 'orphan'
const defaultPodGraceSeconds = 30
const protectedNamespaces = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease'])
/** Kinds whose deletion returns the object even if it is gone at once. */
const answersWithObject = new Set(['Pod', 'Service', 'ServiceAccount', 'PersistentVolumeClaim'])

/** The result of a deletion: the object is gone, or waits for its grace period or finalizers. */
export interface Deletion {
  readonly kind: 'gone' | 'pending'
  readonly object: StoredObject
}

/**
 * Deletes an object, or marks it as deleted.
 * @throws ApiError for a failed precondition or a missing object.
 */
export function deleteObject(
  ctx: ServerContext,
  served: Served,
  key: ObjectKey,
  request: LocalDeleteOptions,
  options: WriteOptions,
): Deletion {
  const object = readObject(ctx, served, key)
  if (object === undefined) throw notFound(subjectOf(served), key.name)
  checkPreconditions(served, object, request)
  validated(ctx, { served, operation: 'DELETE', oldObject: object }, options)
  refuseProtected(served, object)
  const finalizers = finalizersFor(object, request)
  const graceSeconds = graceOf(served, object, request)
  const held = finalizers.length > 0 || hasNamespaceFinalizers(served, object)
  if (!held && graceSeconds === 0) return remove(ctx, served, object, options)
  const marked = markDeleted(ctx, served, object, finalizers, graceSeconds)
  if (marked === object) return { kind: 'pending', object }
  const pending = commit(ctx, served, marked, options)
  if (!options.dryRun)
    deleteCustomResources(ctx, served, pending, (other, otherKey) => {
      deleteObject(ctx, other, otherKey, {}, options)
    })
  // A CRD without objects is gone by now.
  const still = options.dryRun || readObject(ctx, served, key) !== undefined
  return { kind: still ? 'pending' : 'gone', object: pending }
}

/** The response to a deletion. */
export function deletionAnswer(served: Served, deletion: Deletion): StoredObject | Status {
  if (deletion.kind === 'pending' || answersWithObject.has(served.definition.kind)) return deletion.object
  const { name, uid } = deletion.object.metadata
  return deletedStatus(subjectOf(served), name, uid)
}

/**
 * Removes an object if an update removed the last thing that delayed its deletion.
 * @returns its last state, or `undefined` if it stays.
 */
export function removeWhenFinished(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  options: WriteOptions,
): StoredObject | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata
  if (deletionTimestamp === undefined || (finalizers ?? []).length > 0) return undefined
  if ((deletionGracePeriodSeconds ?? 0) > 0 || hasNamespaceFinalizers(served, object)) return undefined
  return remove(ctx, served, object, options).object
}

function remove(ctx: ServerContext, served: Served, object: StoredObject, options: WriteOptions): Deletion {
  if (options.dryRun) return { kind: 'gone', object }
  const collection = ctx.store.collection(served.collection)
  const { namespace, name } = object.metadata
  const last = ctx.store.remove(collection, storageKey(served, { namespace, name }), served.toStored(object))
  afterCustomResourceRemoved(ctx, served, options)
  return { kind: 'gone', object: served.view(last) }
}

function checkPreconditions(served: Served, object: StoredObject, request: LocalDeleteOptions): void {
  const { name, uid, resourceVersion } = object.metadata
  const refuse = (what: string, asked: string, actual: string | undefined) =>
    conflict(
      subjectOf(served),
      name,
      `Precondition failed: ${what} in precondition: ${asked}, ${what} in object meta: ${actual}`,
    )
  if (request.preconditionUid !== undefined && request.preconditionUid !== uid)
    throw refuse('UID', request.preconditionUid, uid)
  const { preconditionResourceVersion: version } = request
  if (version !== undefined && version !== resourceVersion)
    throw refuse('ResourceVersion', version, resourceVersion)
}

function refuseProtected(served: Served, object: StoredObject): void {
  const { name } = object.metadata
  if (
    served.definition.kind === 'Namespace' &&
    served.definition.group === '' &&
    protectedNamespaces.has(name)
  )
    throw forbidden(subjectOf(served), name, 'this namespace may not be deleted')
}

/** Finalizers that tell the garbage collector what to do with dependents. */
function finalizersFor(object: StoredObject, request: LocalDeleteOptions): readonly string[] {
  const present = object.metadata.finalizers ?? []
  const policy = request.propagationPolicy
  if (policy === undefined) return present
  const others = present.filter((finalizer) => finalizer !== foreground && finalizer !== orphan)
  if (policy === 'Foreground') return [...others, foreground]
  return policy === 'Orphan' ? [...others, orphan] : others
}

function graceOf(served: Served, object: StoredObject, request: LocalDeleteOptions): number {
  if (served.definition.kind !== 'Pod' || served.definition.group !== '') return 0
  const spec = (object['spec'] ?? {}) as { nodeName?: string; terminationGracePeriodSeconds?: number }
  const phase = (object['status'] as { phase?: string } | undefined)?.phase
  if (request.gracePeriodSeconds === 0) return 0
  if (spec.nodeName === undefined || spec.nodeName === '' || phase === 'Succeeded' || phase === 'Failed')
    return 0
  const asked = request.gracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? defaultPodGraceSeconds
  return asked < 0 ? 1 : asked
}

function hasNamespaceFinalizers(served: Served, object: StoredObject): boolean {
  if (served.definition.kind !== 'Namespace' || served.definition.group !== '') return false
  return ((object['spec'] as { finalizers?: readonly string[] } | undefined)?.finalizers ?? []).length > 0
}

/** The object with its deletion; the same object if nothing changes. */
function markDeleted(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  finalizers: readonly string[],
  graceSeconds: number,
): StoredObject {
  const old = object.metadata
  const already = old.deletionTimestamp !== undefined
  const oldGrace = old.deletionGracePeriodSeconds ?? 0
  const sameFinalizers = (old.finalizers ?? []).join() === finalizers.join()
  if (already && sameFinalizers && graceSeconds >= oldGrace) return object
  if (already && graceSeconds >= oldGrace) return withMetadata(object, { finalizers })
  const now = ctx.clock.now()
  const marked = {
    ...object,
    metadata: withoutEmpty({
      ...old,
      finalizers,
      deletionTimestamp: rfc3339(now + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
      generation: old.generation === undefined || already ? old.generation : old.generation + 1,
    }),
  }
  if (served.definition.kind !== 'Namespace' || served.definition.group !== '') return marked
  return { ...marked, status: { ...(object['status'] as object | undefined), phase: 'Terminating' } }
}
