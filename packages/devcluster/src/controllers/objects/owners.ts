import {
  apiVersionOf,
  type KubeObject,
  type LabelSelector,
  type OwnerReference,
  type ResourceType,
  matchesSelector,
} from '@tenon/api'
import type { ClusterStore } from '../loop/cluster-store.ts'
import type { Index, ObjectCache } from '../loop/object-cache.ts'
import { isEmptySelector } from './selectors.ts'

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true)
}

/** The controller reference for an object that a controller creates. */
export function controllerReference(owner: KubeObject, type: ResourceType): OwnerReference {
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

const orphansOf = (namespace: string) => `orphan/${namespace}`

/** Objects by controller uid; those without a controller by namespace. */
export function indexByController<T extends KubeObject>(cache: ObjectCache<T>): Index<T> {
  return cache.index(controllerUid)
}

function controllerUid(object: KubeObject): readonly string[] {
  return [controllerOf(object)?.uid ?? orphansOf(object.metadata.namespace ?? '')]
}

/** Enqueues the controller of a changed object, or those that might adopt it. */
export function followDependents<T extends KubeObject>(
  cache: ObjectCache<T>,
  kind: string,
  enqueue: (namespace: string, name: string) => void,
  enqueueAdopters: (orphan: T) => void,
): void {
  cache.onChange((now, before) => {
    for (const object of [now, before]) {
      if (object === undefined) continue
      const owner = controllerOf(object)
      if (owner?.kind === kind) enqueue(object.metadata.namespace ?? '', owner.name)
    }
    if (now !== undefined && controllerOf(now) === undefined) enqueueAdopters(now)
  })
}

/** What claiming needs of the owner. */
export interface Claimant<T extends KubeObject> {
  readonly index: Index<T>
  readonly type: ResourceType<T>
  readonly owner: KubeObject
  readonly ownerType: ResourceType
  readonly selector: LabelSelector | undefined
}

const claimsPerStep = 1_000

/**
 * What `owner` controls, after adopting matching objects without a controller and releasing those that no longer match.
 * An owner being deleted adopts nothing. Yields from time to time: objects that others create meanwhile are handled by
 * the next reconcile.
 */
export function* claimInSteps<T extends KubeObject>(
  store: ClusterStore,
  claimant: Claimant<T>,
): Generator<undefined, T[], undefined> {
  const { index, owner, selector } = claimant
  const uid = owner.metadata.uid ?? ''
  const claimed: T[] = []
  const released: T[] = []
  let seen = 0
  for (const object of index.of(uid)) {
    if (matchesSelector(selector, object.metadata.labels)) claimed.push(object)
    else released.push(object)
    if (++seen % claimsPerStep === 0) yield
  }
  settle(store, claimant, { claimed, released })
  return claimed
}

/** Releases objects, and adopts others into the claimed ones. */
function settle<T extends KubeObject>(
  store: ClusterStore,
  { index, type, owner, ownerType, selector }: Claimant<T>,
  { claimed, released }: { readonly claimed: T[]; readonly released: readonly T[] },
): void {
  const uid = owner.metadata.uid ?? ''
  if (owner.metadata.deletionTimestamp !== undefined) return
  for (const object of released) store.modify(type, object, (latest) => withoutOwner(latest, uid))
  if (isEmptySelector(selector)) return
  const adoptable = [...index.of(orphansOf(owner.metadata.namespace ?? ''))].filter(
    (object) =>
      object.metadata.deletionTimestamp === undefined && matchesSelector(selector, object.metadata.labels),
  )
  for (const object of adoptable) {
    const adopted = store.modify(type, object, (latest) => withController(latest, owner, ownerType))
    if (adopted !== undefined && controllerOf(adopted)?.uid === uid) claimed.push(adopted)
  }
}

/**
 * The same for an owner of many objects, most of which are known to match.
 * @param changed controlled objects that may no longer match.
 */
export function claimAmong<T extends KubeObject>(
  store: ClusterStore,
  changed: Iterable<T>,
  claimant: Claimant<T>,
): void {
  const { selector } = claimant
  const released = [...changed].filter((object) => !matchesSelector(selector, object.metadata.labels))
  settle(store, claimant, { claimed: [], released })
}

/** The same without yielding, for owners of few objects. */
export function claimDependents<T extends KubeObject>(store: ClusterStore, claimant: Claimant<T>): T[] {
  const steps = claimInSteps(store, claimant)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

function withController<T extends KubeObject>(object: T, owner: KubeObject, ownerType: ResourceType): T {
  if (controllerOf(object) !== undefined) return object
  const others = object.metadata.ownerReferences ?? []
  const ownerReferences = [...others, controllerReference(owner, ownerType)]
  return { ...object, metadata: { ...object.metadata, ownerReferences } }
}

/** The object without its references to owners of `uid`. */
export function withoutOwner<T extends KubeObject>(object: T, uid: string): T {
  const owners = object.metadata.ownerReferences ?? []
  const kept = owners.filter((owner) => owner.uid !== uid)
  if (kept.length === owners.length) return object
  return { ...object, metadata: { ...object.metadata, ownerReferences: kept } }
}
