import type { FieldError, StoredObject } from '../../contract.ts'
import { mutated, validated } from '../admission/index.ts'
import { admitUpdate } from '../admission/plug-ins.ts'
import { deprecationWarnings } from '../admission/pod-security/deprecated-fields.ts'
import { checkPodSecurity } from '../admission/pod-security/pod-security.ts'
import { policyOf } from '../admission/policy-status.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { createObject } from './create.ts'
import { checkCustomResourceDefinition, crdOf } from '../kinds/custom-resources.ts'
import { removeWhenFinished } from './delete.ts'
import { checkLimitRanges } from '../limits/limit-ranges.ts'
import {
  sameContent,
  specChanged,
  updatedMetadata,
  validateMetadata,
  validateMetadataUpdate,
} from './metadata.ts'
import { simulationWarnings } from '../not-simulated.ts'
import type { Served } from '../kinds/registry.ts'
import { withTaintTimes } from '../kinds/taint-times.ts'
import { badRequest, conflict, invalid, notFound, staleUpdate } from '../http/status.ts'
import {
  checkType,
  commit,
  pruned,
  readObject,
  refuseInvalid,
  subjectOf,
  timestamp,
  tracked,
  withField,
  withMetadata,
} from './writing.ts'
import { ownValue } from '@tenon/api'
import { sameJson } from '../equality.ts'

/** Subresources that are written as part of the object. */
export type WriteSubresource = 'status' | 'finalize' | 'resize'

/** Built-in kinds that are only updated with a resourceVersion. */
const versionRequired = new Set([
  'Lease',
  'PodDisruptionBudget',
  'PriorityClass',
  'APIService',
  'ResourceSlice',
])
/** Kinds that a PUT creates if they do not exist. */
const createdByUpdate = new Set(['Lease', 'Event', 'Endpoints', 'LimitRange'])
/** Kinds whose status writers may also set labels and annotations, like kubelets. */
const labelledByStatus = new Set(['Pod', 'Node', 'PersistentVolume', 'PersistentVolumeClaim', 'Service'])

/** What a write changes. */
export interface WriteTarget {
  readonly served: Served
  readonly key: ObjectKey
  /** Absent for the object itself. */
  readonly subresource: WriteSubresource | undefined
}

/**
 * Replaces an object or its status.
 * @throws ApiError like a Kubernetes API server.
 */
export function updateObject(
  ctx: ServerContext,
  { served, key, subresource }: WriteTarget,
  input: StoredObject,
  options: WriteOptions,
): StoredObject {
  checkType(served, input)
  if (input.metadata?.name !== key.name)
    throw badRequest(
      `the name of the object (${input.metadata?.name ?? ''}) does not match the name on the URL (${key.name})`,
    )
  const old = readObject(ctx, served, key)
  if (old === undefined) {
    if (createdByUpdate.has(served.definition.kind) && subresource === undefined)
      return createObject(ctx, served, key.namespace, input, options)
    throw notFound(subjectOf(served), key.name)
  }
  checkVersion(served, old, input, options)
  const next = pruned(served, input, options, old)
  return replaceObject(ctx, { served, old, next, subresource }, options)
}

/** Refuses an object that is not based on the stored version. */
function checkVersion(served: Served, old: StoredObject, next: StoredObject, options: WriteOptions): void {
  const { uid, resourceVersion } = next.metadata
  if (uid !== undefined && uid !== '' && uid !== old.metadata.uid)
    throw conflict(
      subjectOf(served),
      old.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    )
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== '0') {
    if (resourceVersion !== old.metadata.resourceVersion)
      throw staleUpdate(subjectOf(served), old.metadata.name)
    return
  }
  const mustState = served.crdName !== undefined || versionRequired.has(served.definition.kind)
  if (mustState && !options.internal)
    throw invalid(subjectOf(served), old.metadata.name, [
      {
        field: 'metadata.resourceVersion',
        kind: 'invalid',
        value: 0,
        detail: 'must be specified for an update',
      },
    ])
}

/** An object that replaces a stored one. */
export interface Replacement {
  readonly served: Served
  readonly old: StoredObject
  readonly next: StoredObject
  /** Absent for the object itself. */
  readonly subresource: WriteSubresource | undefined
}

/** Replaces `old` by `next`, which have the same identity and version. */
export function replaceObject(
  ctx: ServerContext,
  replacement: Replacement,
  options: WriteOptions,
): StoredObject {
  const { served, old, subresource } = replacement
  const object = prepareReplacement(ctx, replacement, options)
  if (sameContent(object, old)) return old
  return finishUpdate(
    ctx,
    served,
    tracked(ctx, { served, before: old, after: object, subresource }, options),
    options,
  )
}

/** All steps of an update except field ownership and the commit. */
export function prepareReplacement(
  ctx: ServerContext,
  replacement: Replacement,
  options: WriteOptions,
): StoredObject {
  const { served, old, subresource } = replacement
  const scoped = withScope(replacement, options)
  const { kind } = served.definition
  const filled = served.definition.applyDefaults(scoped, old)
  const defaulted = withTaintTimes(kind, filled, old, timestamp(ctx))
  const own = subresource === undefined ? admitUpdate(ctx, served, defaulted, old) : defaulted
  const write = { served, operation: 'UPDATE', subresource, oldObject: old } as const
  const admitted = mutated(ctx, { ...write, object: own }, options)
  refuseInvalid(served, old.metadata.name, [
    ...validateMetadataUpdate(admitted.metadata, old.metadata),
    ...(served.crdName === undefined ? [] : validateMetadata(admitted.metadata, old.metadata)),
    ...(subresource === 'resize' ? beyondResize(old, admitted) : []),
    ...served.definition.validate(admitted, subresource === 'resize' ? undefined : old),
  ])
  const isChanged = served.definition.hasGeneration && specChanged(admitted, old)
  if (subresource === undefined && isChanged && served.collection !== 'pods' && !options.internal)
    options.warnings.push(...deprecationWarnings(served, admitted))
  if (subresource === undefined || subresource === 'resize') {
    // Only a resize changes the resources of a pod's containers.
    if (served.collection !== 'pods' || subresource === 'resize') checkLimitRanges(ctx, served, admitted)
    checkPodSecurity(ctx, { ...write, object: admitted }, options)
    ctx.quotas.check(served, admitted, old)
    if (!options.internal) options.warnings.push(...simulationWarnings(served.collection, admitted, old))
  }
  checkCustomResourceDefinition(served, admitted)
  validated(ctx, { ...write, object: admitted }, options)
  const object = subresource === undefined ? crdOf(ctx, served, admitted, old) : admitted
  const isPart = subresource !== undefined && subresource !== 'resize'
  if (isPart || old.metadata.generation === undefined || !specChanged(object, old)) return object
  return policyOf(ctx, served, withMetadata(object, { generation: old.metadata.generation + 1 }))
}

/** Commits an update, or removes the object if nothing delays its deletion any more. */
export function finishUpdate(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  options: WriteOptions,
): StoredObject {
  return removeWhenFinished(ctx, served, object, options) ?? commit(ctx, served, object, options)
}

/** `old` with the parts of `next` that this kind of write may change. */
function withScope({ served, old, next, subresource }: Replacement, options: WriteOptions): StoredObject {
  if (subresource === 'finalize') return withFinalizers(old, next)
  if (subresource === 'status')
    return withField({ ...old, metadata: statusMetadata(served, old, next) }, 'status', next['status'])
  const metadata = updatedMetadata(next.metadata, old.metadata)
  const kept = served.definition.subresources.includes('status')
    ? withField({ ...next, metadata }, 'status', old['status'])
    : { ...next, metadata }
  // Clients can only change a namespace's spec.finalizers by the finalize subresource.
  return served.definition.kind === 'Namespace' && !options.internal ? withFinalizers(kept, old) : kept
}

function statusMetadata(served: Served, old: StoredObject, next: StoredObject): StoredObject['metadata'] {
  if (next.metadata === old.metadata) return old.metadata
  const { managedFields } = next.metadata
  const base = { ...old.metadata, ...(managedFields === undefined ? {} : { managedFields }) }
  if (served.crdName !== undefined || !labelledByStatus.has(served.definition.kind)) return base
  const { labels, annotations } = next.metadata
  return {
    ...base,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  }
}

function withFinalizers(object: StoredObject, source: StoredObject): StoredObject {
  const { finalizers } = (source['spec'] ?? {}) as { finalizers?: unknown }
  return { ...object, spec: finalizers === undefined ? {} : { finalizers } }
}

interface SizedContainer {
  readonly name?: string
  readonly resources?: unknown
}

/** The stored pod with the new resources of its containers. */
function resized(old: StoredObject, next: StoredObject): StoredObject {
  const containersOf = (object: StoredObject, list: string) =>
    (ownValue(object['spec'] as Readonly<Record<string, unknown>> | undefined, list) ??
      []) as readonly SizedContainer[]
  const lists = ['containers', 'initContainers'].filter((list) => containersOf(old, list).length > 0)
  const sized = lists.map((list) => {
    const given = new Map(containersOf(next, list).map((container) => [container.name, container]))
    const containers = containersOf(old, list).map((container) => {
      const { resources } = given.get(container.name) ?? container
      return resources === undefined ? container : { ...container, resources }
    })
    return [list, containers]
  })
  return { ...old, spec: { ...(old['spec'] as object), ...Object.fromEntries(sized) } }
}

/** Errors for changes besides container resources. */
function beyondResize(old: StoredObject, next: StoredObject): readonly FieldError[] {
  if (sameJson(next['spec'], resized(old, next)['spec'])) return []
  return [
    { field: 'spec', kind: 'forbidden', detail: 'only cpu and memory resources of containers are mutable' },
  ]
}
