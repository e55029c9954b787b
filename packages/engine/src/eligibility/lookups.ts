/** Lookups and provider rules for the validation of pods. */
import {
  labels,
  type Node,
  normalizedLabel,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
} from '@tenon/api'

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
