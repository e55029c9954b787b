import type { StoredObject } from '../../contract.ts'
import { compileCrd } from '../../schema/index.ts'
import type { ObjectKey, ServerContext, WriteOptions } from '../context.ts'
import { collectionId, type Served } from './registry.ts'
import { invalid } from '../http/status.ts'
import { withMetadata } from '../verbs/writing.ts'

const cleanup = 'customresourcecleanup.apiextensions.k8s.io'
const crdCollection = 'customresourcedefinitions.apiextensions.k8s.io'

interface CrdCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
}

interface CrdContent {
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string; readonly [part: string]: unknown }
    readonly versions: readonly { readonly name: string; readonly storage?: boolean }[]
  }
  readonly status?: {
    readonly conditions?: readonly CrdCondition[]
    readonly storedVersions?: readonly string[]
  }
}

function isCrd(served: Served): boolean {
  return served.collection === crdCollection
}

function contentOf(crd: StoredObject): CrdContent {
  return crd as unknown as CrdContent
}

/** Refuses a CRD whose schemas or names cannot be served. */
export function checkCustomResourceDefinition(served: Served, object: StoredObject): void {
  if (!isCrd(served)) return
  const compiled = compileCrd(object)
  if (compiled.errors !== undefined) throw invalid(served.definition, object.metadata.name, compiled.errors)
}

/** A CRD with the status that the server computes; other objects unchanged. */
export function crdOf(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  old?: StoredObject,
): StoredObject {
  if (!isCrd(served)) return object
  const { spec } = contentOf(object)
  const before = old === undefined ? undefined : contentOf(old).status
  const stored = spec.versions.find((version) => version.storage === true)?.name
  const storedVersions = [
    ...new Set([...(before?.storedVersions ?? []), ...(stored === undefined ? [] : [stored])]),
  ]
  const status = {
    acceptedNames: { ...spec.names },
    conditions: conditionsOf(ctx, before?.conditions ?? []),
    storedVersions,
  }
  if (old !== undefined) return { ...object, status }
  return { ...withMetadata(object, { finalizers: [...(object.metadata.finalizers ?? []), cleanup] }), status }
}

function conditionsOf(ctx: ServerContext, before: readonly CrdCondition[]): readonly CrdCondition[] {
  const lastTransitionTime = `${new Date(ctx.clock.now()).toISOString().slice(0, 19)}Z`
  const wanted: readonly CrdCondition[] = [
    {
      type: 'NamesAccepted',
      status: 'True',
      reason: 'NoConflicts',
      message: 'no conflicts found',
      lastTransitionTime,
    },
    {
      type: 'Established',
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
      lastTransitionTime,
    },
  ]
  const missing = wanted.filter((condition) => !before.some(({ type }) => type === condition.type))
  return [...before, ...missing]
}

/** Serves the stored CRDs, and updates that after every commit. */
export function serveCustomResources(ctx: ServerContext): void {
  const crds = ctx.store.collection(crdCollection)
  crds.scan({}, (crd) => {
    serve(ctx, crd)
    return true
  })
  ctx.store.onCommit((collection, change) => {
    if (collection !== crds) return
    if (change.type === 'DELETED') ctx.registry.removeCustom(change.object.metadata.name)
    else if (change.previous?.['spec'] !== change.object['spec']) serve(ctx, change.object)
  })
}

function serve(ctx: ServerContext, crd: StoredObject): void {
  const compiled = compileCrd(crd)
  if (compiled.errors !== undefined) {
    ctx.logger.error('a stored CustomResourceDefinition cannot be served', { name: crd.metadata.name })
    return
  }
  ctx.registry.setCustom(crd.metadata.name, compiled.definitions)
}

/** Whether the CRD of a custom resource is being deleted. */
export function isTerminatingCrd(ctx: ServerContext, served: Served): boolean {
  if (served.crdName === undefined) return false
  const crd = ctx.store.collection(crdCollection).get(`\u0000${served.crdName}`)
  return crd?.metadata.deletionTimestamp !== undefined
}

/** Deletes the objects of a CRD that is being deleted. */
export function deleteCustomResources(
  ctx: ServerContext,
  served: Served,
  crd: StoredObject,
  deleteOne: (served: Served, key: ObjectKey) => void,
): void {
  if (!isCrd(served)) return
  const { group, names } = contentOf(crd).spec
  const custom = ctx.registry.all().find((other) => other.crdName === crd.metadata.name)
  const keys: ObjectKey[] = []
  ctx.store.collection(collectionId(group, names.plural)).scan({}, ({ metadata }) => {
    keys.push({ namespace: metadata.namespace, name: metadata.name })
    return true
  })
  if (custom !== undefined) for (const key of keys) deleteOne(custom, key)
  finishCrd(ctx, crd.metadata.name)
}

/** Removes a CRD being deleted once its last object is gone. */
export function afterCustomResourceRemoved(ctx: ServerContext, served: Served, options: WriteOptions): void {
  if (options.dryRun || served.crdName === undefined || !isTerminatingCrd(ctx, served)) return
  finishCrd(ctx, served.crdName)
}

function finishCrd(ctx: ServerContext, name: string): void {
  const crds = ctx.store.collection(crdCollection)
  const crd = crds.get(`\u0000${name}`)
  if (crd === undefined) return
  const { group, names } = contentOf(crd).spec
  if (ctx.store.collection(collectionId(group, names.plural)).size > 0) return
  const finalizers = (crd.metadata.finalizers ?? []).filter((finalizer) => finalizer !== cleanup)
  const released = withMetadata(crd, { finalizers })
  if (finalizers.length > 0) ctx.store.put(crds, `\u0000${name}`, released)
  else ctx.store.remove(crds, `\u0000${name}`, released)
}
