import { apiVersionOf, type LabelSelector, ownValue, selectorText } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { type PatchRequest, patched } from './patch.ts'
import type { Served } from '../kinds/registry.ts'
import { badRequest, invalid, noSuchPath, notFound, staleUpdate } from '../http/status.ts'
import { replaceObject } from './update.ts'
import { readObject } from './writing.ts'

/** The Scale of an object. */
export function readScale(ctx: ServerContext, served: Served, key: ObjectKey): StoredObject {
  const object = readObject(ctx, served, key)
  if (object === undefined) throw notFound(served.definition, key.name)
  return scaleOf(served, object)
}

/**
 * Replaces the Scale of an object.
 * @throws ApiError.
 */
export function updateScale(
  ctx: ServerContext,
  served: Served,
  key: ObjectKey,
  scale: StoredObject,
  options: WriteOptions,
): StoredObject {
  const old = readObject(ctx, served, key)
  if (old === undefined) throw notFound(served.definition, key.name)
  return writeScale(ctx, served, old, scale, options)
}

/**
 * Patches the Scale of an object.
 * @throws ApiError.
 */
export function patchScale(
  ctx: ServerContext,
  served: Served,
  key: ObjectKey,
  request: PatchRequest,
  options: WriteOptions,
): StoredObject {
  const old = readObject(ctx, served, key)
  if (old === undefined) throw notFound(served.definition, key.name)
  const current = scaleOf(served, old)
  // A Scale has no lists, so both merge patches are equal.
  const kind = request.kind === 'json' ? 'json' : 'merge'
  return writeScale(ctx, served, old, patched(served, current, { ...request, kind }), options)
}

function writeScale(
  ctx: ServerContext,
  served: Served,
  old: StoredObject,
  scale: StoredObject,
  options: WriteOptions,
): StoredObject {
  const paths = served.definition.scale
  if (paths === undefined) throw noSuchPath()
  const { resourceVersion } = scale.metadata ?? {}
  if (
    resourceVersion !== undefined &&
    resourceVersion !== '' &&
    resourceVersion !== old.metadata.resourceVersion
  )
    throw staleUpdate(served.definition, old.metadata.name)
  const replicas = (scale['spec'] as { replicas?: unknown } | undefined)?.replicas ?? 0
  if (!Number.isInteger(replicas)) throw badRequest('spec.replicas must be an integer')
  if ((replicas as number) < 0)
    throw invalid({ group: 'autoscaling', plural: 'scales', kind: 'Scale' }, old.metadata.name, [
      {
        field: 'spec.replicas',
        kind: 'invalid',
        value: replicas,
        detail: 'must be greater than or equal to 0',
      },
    ])
  const next = setPath(old, segments(paths.specReplicasPath), replicas) as StoredObject
  return scaleOf(
    served,
    replaceObject(ctx, { served, old, next, subresource: undefined }, { ...options, internal: true }),
  )
}

function scaleOf(served: Served, object: StoredObject): StoredObject {
  const paths = served.definition.scale
  if (paths === undefined) throw noSuchPath()
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const selector =
    paths.labelSelectorPath === undefined ? undefined : getPath(object, segments(paths.labelSelectorPath))
  return {
    kind: 'Scale',
    apiVersion: apiVersionOf({ group: 'autoscaling', version: 'v1' }),
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: uid as string,
      resourceVersion: resourceVersion as string,
      creationTimestamp: creationTimestamp as string,
    },
    spec: { replicas: getPath(object, segments(paths.specReplicasPath)) ?? 0 },
    status: {
      replicas: getPath(object, segments(paths.statusReplicasPath)) ?? 0,
      ...(selector === undefined ? {} : { selector: textOf(selector) }),
    },
  }
}

function segments(path: string): readonly string[] {
  return path.split('.').filter((segment) => segment !== '')
}

function getPath(value: unknown, path: readonly string[]): unknown {
  let current = value
  for (const segment of path) current = ownValue(current as Record<string, unknown> | undefined, segment)
  return current
}

function setPath(value: unknown, path: readonly string[], leaf: unknown): unknown {
  const [segment, ...rest] = path
  if (segment === undefined) return leaf
  const object = (value ?? {}) as Record<string, unknown>
  return { ...object, [segment]: setPath(ownValue(object, segment), rest, leaf) }
}

/** A selector as text, for autoscalers; that of a ReplicationController is a map of labels. */
function textOf(selector: unknown): string {
  if (typeof selector === 'string') return selector
  const isLabels = !['matchLabels', 'matchExpressions'].some((field) =>
    Object.hasOwn(selector as object, field),
  )
  return selectorText((isLabels ? { matchLabels: selector } : selector) as LabelSelector)
}
