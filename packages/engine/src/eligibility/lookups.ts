/** What is looked up to judge a pod's volumes and what the provider sets as its rules. */
import {
  labels,
  type Node,
  normalizedLabel,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
} from '@tenon/api'

/** Storage objects by name; undefined when there is none. */
export interface VolumeLookups {
  readonly claim: (namespace: string, name: string) => PersistentVolumeClaim | undefined
  readonly volume: (name: string) => PersistentVolume | undefined
  readonly storageClass: (name: string) => StorageClass | undefined
  /** PersistentVolumes of a StorageClass, bound ones among them. */
  readonly volumesOfClass: (storageClass: string) => readonly PersistentVolume[]
  /** Pods on nodes that mount the claim and have not ended. */
  readonly podsUsing: (namespace: string, claim: string) => readonly Pod[]
  readonly node: (name: string) => Node | undefined
}

/** The core's and the provider's rules for what pods may ask. */
export interface EligibilityPolicy {
  /** Label keys that pods may always choose by. */
  readonly wellKnownLabels: ReadonlySet<string>
  /** Label keys, beside the core's, that pods may not choose by. */
  readonly restrictedLabels?: ReadonlySet<string>
  /** Domains, beside the core's, whose labels (of subdomains too) pods may not choose by. */
  readonly restrictedDomains?: readonly string[]
  /** CSI drivers whose volumes cannot be used on the provider's nodes. */
  readonly unsupportedProvisioners?: ReadonlySet<string>
  /** Keys that a StorageClass may not restrict volumes by. */
  readonly unsupportedTopologyKeys?: ReadonlySet<string>
  /** Label keys by which the provider's drivers name what has another name on nodes. */
  readonly labelAliases?: ReadonlyMap<string, string>
}

const restrictedDomain = 'karpenter.sh'

/** The key under which nodes and offerings carry a label. */
export function canonicalKey(key: string, policy: EligibilityPolicy): string {
  return normalizedLabel(policy.labelAliases?.get(key) ?? key)
}

/** Whether pods may not choose nodes by `key`, which is canonical (scheduling.md 1, "Restricted labels"). */
export function isRestricted(key: string, policy: EligibilityPolicy): boolean {
  if (policy.wellKnownLabels.has(key)) return false
  if (key === labels.hostname || policy.restrictedLabels?.has(key) === true) return true
  const slash = key.indexOf('/')
  const domain = slash < 0 ? '' : key.slice(0, slash)
  return [restrictedDomain, ...(policy.restrictedDomains ?? [])].some(
    (restricted) => domain === restricted || domain.endsWith(`.${restricted}`),
  )
}
