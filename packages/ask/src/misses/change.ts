/** Single changes that might let a pod run. */
import { applyPatch, type Operation } from 'rfc6902'

type ChangeKind =
  | 'addToleration'
  | 'dropNodeSelector'
  | 'dropNodeAffinity'
  | 'widenNodeAffinity'
  | 'dropPodAffinity'
  | 'dropPodAntiAffinity'
  | 'lowerRequest'
  | 'relaxSpread'
  | 'dropPreference'
  | 'raiseLimit'
  | 'labelPool'
  | 'dropPoolRequirement'
  | 'widenPoolRequirement'
  | 'readyPool'
  | 'dropDeviceSelector'
  | 'dropDeviceConstraint'
  | 'lowerDeviceCount'
  | 'lowerDeviceCapacity'
  | 'addDeviceToleration'
  | 'lowerMinCount'
  | 'dropGroupTopology'

/**
 * The changed object: the pod with the others of its workload, a NodePool, the pod's claim of devices, or its
 * PodGroup. A ResourceClaim is immutable and has to be recreated.
 */
export type ChangeTarget =
  | { readonly kind: 'pod' }
  | { readonly kind: 'nodePool'; readonly name: string }
  | { readonly kind: 'resourceClaim'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'resourceClaimTemplate'; readonly namespace: string; readonly name: string }
  /** `podgroups.GROUP/NAMESPACE/NAME`. */
  | { readonly kind: 'podGroup'; readonly id: string }

export interface Change {
  readonly kind: ChangeKind
  readonly target: ChangeTarget
  /** Path of the field, such as `spec.tolerations`. */
  readonly field: string
  /** What to do: an imperative clause without a full stop. */
  readonly words: string
  /** JSON Patch of the object. Empty for `readyPool`, which a patch cannot do. */
  readonly operations: readonly Operation[]
}

/** Applies the patch; undefined if the object has no such field. */
export function edited<T extends object>(object: T, operations: readonly Operation[]): T | undefined {
  const copy = structuredClone(object)
  return applyPatch(copy, [...operations]).some((error) => error !== null) ? undefined : copy
}

/** Builds a JSON Pointer. */
export function pointer(...names: readonly (string | number)[]): string {
  return names.map((name) => `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
