/** Single changes that might let a pod run. */
import { applyPatch, type Operation } from 'rfc6902'

/** What a change does (ask.md 2). */
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
 * Which object is changed: the pod, with the others of its workload, a NodePool, what the pod claims devices by, or its
 * PodGroup. A claim cannot be changed and has to be made again.
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
  /** Path of the field in the object, such as `spec.tolerations`. */
  readonly field: string
  /** What to do, as an order without a full stop. */
  readonly words: string
  /** JSON Patch of the object. Empty for `readyPool`, which no patch achieves. */
  readonly operations: readonly Operation[]
}

/** The object with a change; undefined when the object has no such place. */
export function edited<T extends object>(object: T, operations: readonly Operation[]): T | undefined {
  const copy = structuredClone(object)
  return applyPatch(copy, [...operations]).some((error) => error !== null) ? undefined : copy
}

/** A JSON Pointer of these names. */
export function pointer(...names: readonly (string | number)[]): string {
  return names.map((name) => `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
