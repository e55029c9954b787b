/** Devices and ResourceClaims (devices.md 3.4). */
import type { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice } from '@tenon/api'

/** If an input has none, pods that use ResourceClaims are unschedulable. */
export interface DevicesInput {
  /** ResourceSlices, without those of nodes that do not exist or are not initialized. */
  readonly slices: readonly ResourceSlice[]
  readonly classes: readonly DeviceClass[]
  /**
   * The name of the DeviceClass that serves each extended resource, on nodes that have none of the resource
   * themselves (devices.md 3.22). Absent = none.
   */
  readonly extendedResources?: ReadonlyMap<string, string>
  /** DeviceTaintRules; they taint devices of new nodes too. Absent = none. */
  readonly taintRules?: readonly DeviceTaintRule[]
  /** The claims that pods of the input use, by `namespace/name`. */
  readonly claims: ReadonlyMap<string, Pick<ResourceClaim, 'spec' | 'status'>>
  /** The claims (`namespace/name`) of each pod in the order of its spec, by pod UID. */
  readonly claimsOf: ReadonlyMap<string, readonly string[]>
  /** UIDs of pods without a node for whose extended resources one of their claims was created. Absent = none. */
  readonly withExtendedClaim?: ReadonlySet<string>
  /** All allocated claims of the cluster. */
  readonly allocations: readonly DeviceAllocation[]
  /** UIDs of pods whose node goes away: devices that only they hold are free. */
  readonly leaving: ReadonlySet<string>
}

/** The devices that one claim holds. */
export interface DeviceAllocation {
  /** `namespace/name` of the claim. */
  readonly claim: string
  /** UIDs of the pods that the claim is reserved for; undefined when it is reserved for other objects too. */
  readonly pods: readonly string[] | undefined
  readonly devices: readonly AllocatedDevice[]
}

export interface AllocatedDevice {
  readonly driver: string
  readonly pool: string
  readonly device: string
  /** The consumed capacity of a shared device; undefined for a whole device. */
  readonly consumedCapacity: Readonly<Record<string, string>> | undefined
}
