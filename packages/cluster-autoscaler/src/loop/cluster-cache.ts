import type { ConfigMap, Node, Pod, PodTemplate, ProvisioningRequest, SelectorLookups } from '@tenon/api'
import type { Labels, VolumeIndex } from '@tenon/filters'
import type { Lookups } from '../model.ts'

/** The cluster as the caches have it. Every call gives what they hold now. */
export interface ClusterCache extends Lookups {
  nodes(): readonly Node[]
  /** All pods, those that have ended among them or not. */
  pods(): readonly Pod[]
  /** Labels of every namespace. */
  namespaces(): ReadonlyMap<string, Labels>
  volumes(): VolumeIndex
  /** What tells which pods are one application; followed only where default constraints need it. */
  readonly applications: SelectorLookups | undefined
  /** Undefined when there is none, or it may not be read. */
  configMap(namespace: string, name: string): ConfigMap | undefined
  /** Undefined where they are not asked for, not served, or not read yet. */
  readonly requests: RequestObjects | undefined
}

/** ProvisioningRequests and what their pods are made from. */
export interface RequestObjects {
  list(): readonly ProvisioningRequest[]
  template(namespace: string, name: string): PodTemplate | undefined
}
