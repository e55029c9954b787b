import type { AttributeBinding, ResourceSliceTemplate } from './devices.ts'
import type { PricePerHour } from './prices.ts'

/**
 * Amounts by resource name in canonical integer units: thousandths of a core for `cpu`, bytes for
 * memory and storage, counts for everything else.
 */
export type Resources = Readonly<Record<string, number>>

export type RequirementOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt' | 'Gte' | 'Lte'

/** A constraint on one label key, as NodePools, NodeClaims and instance types state it. */
export interface Requirement {
  readonly key: string
  readonly operator: RequirementOperator
  readonly values?: readonly string[]
  /** Fewest distinct values that must stay available (NodePool, 1 to 50). */
  readonly minValues?: number
}

/** One way to buy an instance type: a zone and a capacity type at a price (scheduling.md 13.1). */
export interface Offering {
  /** Holds at least the zone and the capacity type, one value each. */
  readonly requirements: readonly Requirement[]
  readonly pricePerHour: PricePerHour
  readonly available: boolean
  /** Of an offering that is not available: what stands in the way now, where that is known. */
  readonly unavailability?: Unavailability
  /** Instances left in a reservation; only for capacity type `reserved`. */
  readonly reservationCapacity?: number
  /** Resources this offering has in place of the type's, or beside them. */
  readonly capacityOverride?: Resources
  /** Overhead of these resources in place of the type's total. */
  readonly overheadOverride?: Resources
}

/** One way to get an instance: a type in a zone, with a capacity type. */
export interface OfferingRef {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
}

/**
 * What a launch failed for: an offering, or more than one. A type of a node class has no zone and no capacity type,
 * a node class and a NodePool have no type either; what is empty stands for all.
 */
export interface LaunchScope extends OfferingRef {
  /** As `KIND/NAME`. */
  readonly nodeClass?: string
  readonly nodePool?: string
}

/** Why an offering cannot be bought at present. */
export interface Unavailability {
  /** A clause without a full stop, such as `the quota of instances is used up`. */
  readonly because: string
  /** Unix milliseconds: no launch tries the offering before. Absent: not known. */
  readonly untilMs?: number
}

/** An instance shape a provider can launch (scheduling.md 13.1). */
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
  /** Devices that its nodes will publish, at most one template for each pool of a driver. */
  readonly resourceSliceTemplates?: readonly ResourceSliceTemplate[]
  readonly attributeBindings?: readonly AttributeBinding[]
  /** What NodeOverlays changed: some offering's price, some resource of the capacity. */
  readonly overlaid?: { readonly price?: boolean; readonly capacity?: boolean }
}
