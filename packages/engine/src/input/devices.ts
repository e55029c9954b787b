/** Devices and claims on them, as a decision sees them (devices.md 3.4). */
import type { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice } from '@tenon/api'

/** Absent from an input, pods that use ResourceClaims find no place. */
export interface DevicesInput {
  /** What drivers have published, the slices of nodes apart that are not there or not initialized. */
  readonly slices: readonly ResourceSlice[]
  readonly classes: readonly DeviceClass[]
  /** Rules that taint devices, also those of nodes that are still to come; none unless set. */
  readonly taintRules?: readonly DeviceTaintRule[]
  /** By `namespace/name`: the claims that pods of the input use. */
  readonly claims: ReadonlyMap<string, Pick<ResourceClaim, 'spec' | 'status'>>
  /** By pod UID the claims (`namespace/name`) that the pod uses, in its order; pods without claims are not here. */
  readonly claimsOf: ReadonlyMap<string, readonly string[]>
  /** Every claim of the cluster that has devices. */
  readonly allocations: readonly DeviceAllocation[]
  /** UIDs of the pods whose node goes: what they alone hold is free. */
  readonly leaving: ReadonlySet<string>
}

/** The devices that one claim holds. */
export interface DeviceAllocation {
  /** `namespace/name` of the claim. */
  readonly claim: string
  /** UIDs of the pods for which the claim is reserved; undefined when it is not reserved for pods alone. */
  readonly pods: readonly string[] | undefined
  readonly devices: readonly AllocatedDevice[]
}

export interface AllocatedDevice {
  readonly driver: string
  readonly pool: string
  readonly device: string
  /** What is taken of a device that several claims share; undefined for a whole device. */
  readonly consumedCapacity: Readonly<Record<string, string>> | undefined
}
