/** Lookups and provider rules for the validation of pods. */
import {
  labels,
  type Node,
  type NodeSelectorRequirement,
  normalizedLabel,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
} from '@tenon/api'

/** Volumes up to `bytes` can be provisioned for nodes that meet the term. */
interface SharedStorage {
  readonly term: readonly NodeSelectorRequirement[]
  readonly bytes: number
}

/** The largest volumes, in bytes, that can be provisioned on single nodes. */
export interface LocalStorage {
  /** By host name; nodes that are not listed have not published theirs yet. */
  readonly byHost: ReadonlyMap<string, number>
  /** What an empty node has, by name of the instance type; unknown of types that are not listed. */
  readonly byType: ReadonlyMap<string, number>
}

/** What the driver of a StorageClass can still provision, and for which nodes (scheduling.md 8.3). */
export interface ClassCapacity {
  readonly shared: readonly SharedStorage[]
  /** Undefined if new nodes bring no storage. */
  readonly local: LocalStorage | undefined
}

/** Storage objects by name; undefined if they do not exist. */
export interface VolumeLookups {
  readonly claim: (namespace: string, name: string) => PersistentVolumeClaim | undefined
  readonly volume: (name: string) => PersistentVolume | undefined
  readonly storageClass: (name: string) => StorageClass | undefined
  /** PersistentVolumes of a StorageClass, including bound ones. */
  readonly volumesOfClass: (storageClass: string) => readonly PersistentVolume[]
  /** Bound pods that mount the claim and have not ended. */
  readonly podsUsing: (namespace: string, claim: string) => readonly Pod[]
  readonly node: (name: string) => Node | undefined
  /** Undefined for classes whose driver publishes no capacity; absent = for all. */
  readonly storageCapacity?: (storageClass: StorageClass) => ClassCapacity | undefined
}

/** Rules of the core and of the provider for what pods may request. */
export interface EligibilityPolicy {
  /** Label keys that pods may always select on. */
  readonly wellKnownLabels: ReadonlySet<string>
  /** Label keys that pods may not select on, in addition to those of the core. */
  readonly restrictedLabels?: ReadonlySet<string>
  /** Domains whose labels (subdomains included) pods may not select on, in addition to those of the core. */
  readonly restrictedDomains?: readonly string[]
  /** CSI drivers whose volumes cannot be used on the provider's nodes. */
  readonly unsupportedProvisioners?: ReadonlySet<string>
  /** Keys that `allowedTopologies` of a StorageClass may not use. */
  readonly unsupportedTopologyKeys?: ReadonlySet<string>
  /** Aliases of label keys, as the provider's CSI drivers use other keys than nodes do. */
  readonly labelAliases?: ReadonlyMap<string, string>
}

const restrictedDomain = 'karpenter.sh'

/** The key that nodes and offerings use for a label. */
export function canonicalKey(key: string, policy: EligibilityPolicy): string {
  return normalizedLabel(policy.labelAliases?.get(key) ?? key)
}

/** Whether pods may not select on the canonical `key` (scheduling.md 1, "Restricted labels"). */
export function isRestricted(key: string, policy: EligibilityPolicy): boolean {
  if (policy.wellKnownLabels.has(key)) return false
  if (key === labels.hostname || policy.restrictedLabels?.has(key) === true) return true
  const slash = key.indexOf('/')
  const domain = slash < 0 ? '' : key.slice(0, slash)
  return [restrictedDomain, ...(policy.restrictedDomains ?? [])].some(
    (restricted) => domain === restricted || domain.endsWith(`.${restricted}`),
  )
}
