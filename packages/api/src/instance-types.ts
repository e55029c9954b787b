import type { AttributeBinding, ResourceSliceTemplate } from './devices.ts'
import type { PricePerHour } from './prices.ts'

/**
 * Amounts by resource name in canonical integer units: millicores for `cpu`, bytes for memory and storage,
 * counts for everything else.
 */
export type Resources = Readonly<Record<string, number>>

export type RequirementOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt' | 'Gte' | 'Lte'

/** A constraint on a label, as in NodePools, NodeClaims and instance types. */
export interface Requirement {
  readonly key: string
  readonly operator: RequirementOperator
  readonly values?: readonly string[]
  /** Minimum number of distinct values that must remain (NodePool, 1 to 50). */
  readonly minValues?: number
}

/** An instance type in one zone and capacity type, with its price (scheduling.md 13.1). */
export interface Offering {
  /** Contains at least zone and capacity type, with one value each. */
  readonly requirements: readonly Requirement[]
  readonly pricePerHour: PricePerHour
  /** The part of the price that is not the instance's own: what its NodePool says each node costs. Absent = none. */
  readonly surchargePerHour?: number
  readonly available: boolean
  /** If the offering is not available: why, if known. */
  readonly unavailability?: Unavailability
  /** Remaining instances of the reservation; only for capacity type `reserved`. */
  readonly reservationCapacity?: number
  /** Replaces or adds to the resources of the type. */
  readonly capacityOverride?: Resources
  /** Replaces the type's total overhead for these resources. */
  readonly overheadOverride?: Resources
}

/** Identifies an offering. */
export interface OfferingRef {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
}

/**
 * What a failed launch says about offerings: one or more than one. The failure of a type in a node class has no
 * zone and no capacity type; that of a node class or a NodePool has no type either. An empty field stands for
 * all.
 */
export interface LaunchScope extends OfferingRef {
  /** As `KIND/NAME`. */
  readonly nodeClass?: string
  readonly nodePool?: string
}

/** Why an offering cannot be bought now. */
export interface Unavailability {
  /** A clause without a full stop, such as `the quota of instances is used up`. */
  readonly because: string
  /** Unix milliseconds before which no launch tries the offering; undefined if unknown. */
  readonly untilMs?: number
}

/** An instance type that a provider can launch (scheduling.md 13.1). */
export interface InstanceType {
  readonly name: string
  readonly requirements: readonly Requirement[]
  readonly offerings: readonly Offering[]
  readonly capacity: Resources
  readonly overhead: {
    readonly kubeReserved: Resources
    readonly systemReserved: Resources
    readonly evictionThreshold: Resources
  }
  /** Devices that its nodes will publish; at most one template per driver and pool. */
  readonly resourceSliceTemplates?: readonly ResourceSliceTemplate[]
  readonly attributeBindings?: readonly AttributeBinding[]
  /** What NodeOverlays changed: the price of some offering, or some capacity. */
  readonly overlaid?: { readonly price?: boolean; readonly capacity?: boolean }
}
