import { type KubeObject, ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import {
  type ApplyConflict,
  applyConflictMessage,
  applyServerSide,
  jsonPatch,
  mergePatch,
  strategicMergePatch,
} from '../../schema/index.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { prepareCreate } from './create.ts'
import { sameJson } from '../equality.ts'
import type { Served } from '../kinds/registry.ts'
import {
  badRequest,
  conflict,
  failure,
  notFound,
  qualified,
  staleUpdate,
  unsupportedMediaType,
} from '../http/status.ts'
import { finishUpdate, prepareReplacement, replaceObject, type WriteTarget } from './update.ts'
import { agreedNamespace, checkType, commit, pruned, readObject, subjectOf } from './writing.ts'

export type PatchKind = 'json' | 'merge' | 'strategic' | 'apply'

/** A parsed patch request. */
export interface PatchRequest {
  readonly kind: PatchKind
  readonly body: unknown
  /** Server-side apply: takes over fields of other managers. */
  readonly force: boolean
}

const patchTypes: Readonly<Record<string, PatchKind>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
  'application/apply-patch+json': 'apply',
}

/**
 * The patch type of a content type.
 * @throws ApiError 415.
 */
export function patchKindOf(mediaType: string, served: Served): PatchKind {
  const kind = ownValue(patchTypes, mediaType)
  if (kind !== undefined && (kind !== 'strategic' || served.crdName === undefined)) return kind
  const accepted = Object.keys(patchTypes).filter(
    (type) => served.crdName === undefined || ownValue(patchTypes, type) !== 'strategic',
  )
  throw unsupportedMediaType(accepted)
}

/**
 * Patches an object or its status.
 * @throws ApiError like a Kubernetes API server.
 */
export function patchObject(
  ctx: ServerContext,
  target: WriteTarget,
  request: PatchRequest,
  options: WriteOptions,
): StoredObject {
  if (request.kind === 'apply') return applyObject(ctx, target, request, options)
  const { served, key, subresource } = target
  const old = readObject(ctx, served, key)
  if (old === undefined) throw notFound(subjectOf(served), key.name)
  const next = patched(served, old, request)
  checkPatched(served, old, next)
  return replaceObject(ctx, { served, old, next: pruned(served, next, options, old), subresource }, options)
}

/** The result of a patch on any object, also for subresources of another kind. */
export function patched(served: Served, object: StoredObject, request: PatchRequest): StoredObject {
  if (request.kind === 'merge') return mergePatch(object, request.body)
  const result =
    request.kind === 'json'
      ? jsonPatch(object, request.body)
      : strategicMergePatch(object, request.body, served.definition.schema)
  if (result.object !== undefined) return result.object
  if (request.kind === 'json' && Array.isArray(request.body))
    throw failure(
      422,
      'Invalid',
      `the server rejected our request due to an error in our request: ${result.error}`,
      {},
    )
  throw badRequest(result.error)
}

function checkPatched(served: Served, old: StoredObject, next: StoredObject): void {
  if (typeof next !== 'object' || next === null || typeof next.metadata !== 'object')
    throw badRequest('the patch does not leave an object')
  checkType(served, next)
  if (next.metadata.name !== old.metadata.name || next.metadata.namespace !== old.metadata.namespace)
    throw badRequest(
      `the name and the namespace of ${qualified(subjectOf(served))} cannot be changed by a patch`,
    )
  const { uid, resourceVersion } = next.metadata
  // An empty uid is not a precondition; `kubectl apply` sends such patches.
  if (uid !== undefined && uid !== '' && uid !== old.metadata.uid)
    throw conflict(
      subjectOf(served),
      old.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    )
  if (
    resourceVersion !== undefined &&
    resourceVersion !== '' &&
    resourceVersion !== old.metadata.resourceVersion
  )
    throw staleUpdate(subjectOf(served), old.metadata.name)
}

function applyObject(
  ctx: ServerContext,
  { served, key, subresource }: WriteTarget,
  request: PatchRequest,
  options: WriteOptions,
): StoredObject {
  const applied = appliedObject(served, key, request.body)
  const live = readObject(ctx, served, key)
  if (live === undefined && subresource !== undefined) throw notFound(subjectOf(served), key.name)
  const { resourceVersion } = applied.metadata
  if (resourceVersion !== undefined && resourceVersion !== live?.metadata.resourceVersion)
    throw staleUpdate(subjectOf(served), key.name)
  const result = applyServerSide({
    live,
    applied: pruned(served, applied, options),
    manager: options.manager,
    force: request.force,
    definition: served.definition,
    ...(subresource === undefined ? {} : { subresource }),
    nowMs: ctx.clock.now(),
  })
  if (result.kind === 'invalid') throw badRequest(result.message)
  if (result.kind === 'conflict') throw applyConflict(result.conflicts)
  if (live === undefined) {
    const { managedFields } = result.object.metadata
    // Unknown fields were removed and reported already.
    const creation: WriteOptions = { ...options, fieldValidation: 'Ignore' }
    const prepared = prepareCreate(ctx, served, key.namespace, result.object, creation)
    const metadata = { ...prepared.metadata, ...(managedFields === undefined ? {} : { managedFields }) }
    return commit(ctx, served, { ...prepared, metadata }, options)
  }
  const next = prepareReplacement(ctx, { served, old: live, next: result.object, subresource }, options)
  return sameApplied(next, live) ? live : finishUpdate(ctx, served, next, options)
}

function appliedObject(served: Served, key: ObjectKey, body: unknown): StoredObject {
  const object = body as KubeObject & { readonly [field: string]: unknown }
  checkType(served, object)
  const namespace = agreedNamespace(served, key.namespace, object)
  if (object.metadata?.name !== undefined && object.metadata.name !== key.name)
    throw badRequest(
      `the name of the object (${object.metadata.name}) does not match the name on the URL (${key.name})`,
    )
  if ((object.metadata?.managedFields ?? []).length > 0)
    throw badRequest('metadata.managedFields must be nil')
  return {
    ...object,
    metadata: { ...object.metadata, name: key.name, ...(namespace === undefined ? {} : { namespace }) },
  }
}

function applyConflict(conflicts: readonly ApplyConflict[]) {
  const causes = conflicts.map(({ message, field }) => ({ reason: 'FieldManagerConflict', message, field }))
  return failure(409, 'Conflict', applyConflictMessage(conflicts), { causes })
}

/** Whether an apply changed neither content nor ownership, apart from times. */
function sameApplied(next: StoredObject, live: StoredObject): boolean {
  const withoutTimes = (object: StoredObject) => ({
    ...object,
    metadata: {
      ...object.metadata,
      resourceVersion: undefined,
      managedFields: (object.metadata.managedFields ?? []).map((entry) => ({ ...entry, time: undefined })),
    },
  })
  return sameJson(withoutTimes(next), withoutTimes(live))
}
