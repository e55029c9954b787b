/** What a scheduling decision says. */
import type { NodePool, Pod, PricePerHour, Requirement, Resources, Taint } from '@tenon/api'
import type { PodReason, UnavailableOffering } from '../reasons/reasons.ts'

/** A claim to create: data for the shell, with the pods it is meant to hold. */
export interface NewClaim {
  /** Name of the NodePool. */
  readonly nodePool: string
  /** The NodePool as this decision saw it. */
  readonly pool: NodePool
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: readonly Requirement[]
  /** Requests of the pods and of the daemon pods that run on every type left. */
  readonly requests: Resources
  /** Names of the types that hold it, cheapest first, those without a known price last. */
  readonly instanceTypes: readonly string[]
  /** Of each amount that its NodePool limits, the most that any of these types has; `nodes` is 1. */
  readonly largest: Resources
  /** Price per hour of the cheapest offering of the cheapest type; undefined when no price is known. */
  readonly pricePerHour: PricePerHour
  /** Whether some minValues was lowered below the NodePool's. */
  readonly minValuesRelaxed: boolean
  /** Whether a NodeOverlay changed the price, the capacity, of some listed type. */
  readonly overlaid: { readonly price: boolean; readonly capacity: boolean }
  /** Reservations it may use, sorted; empty unless it is pinned to reserved capacity. */
  readonly reservationIds: readonly string[]
  /** Drivers that have to publish devices on its node before its pods can run, sorted. */
  readonly deviceDrivers: readonly string[]
  readonly pods: readonly Pod[]
  /** Pods that only stand for room which it is to have, apart from its pods. Absent = none. */
  readonly roomPods?: readonly Pod[]
  /** Ids of the groups of which it has members that no other member runs without, sorted. Absent = none. */
  readonly podGroups?: readonly string[]
}

/** What becomes of pods that only stand for room; those of claims are with the claims. */
export interface RoomResult {
  readonly placements: readonly Placement[]
  readonly failures: readonly Failure[]
  readonly undecided: readonly Pod[]
}

/** Why a claim is not to be created yet. */
export type Deferral =
  /** It can only be launched with offerings on trial, which another claim tries. */
  | { readonly kind: 'offeringsOnTrial' }
  /** Other claims have reserved what is left below this limit of its NodePool. */
  | { readonly kind: 'limitReserved'; readonly limit: string }

/** A claim that pods need and that is not to be created yet. Its pods are decided about again. */
export interface DeferredClaim {
  readonly claim: NewClaim
  readonly because: Deferral
}

/** A pod that goes to a node which is there or on its way. */
export interface Placement {
  readonly pod: Pod
  /** Name of the {@link NodeInput}. */
  readonly node: string
}

/** A pod that finds no place, and why. */
export interface Failure {
  readonly pod: Pod
  readonly reason: PodReason
}

/** What becomes of a group of pods that run together or not at all. */
export type PodGroupResult =
  /** `domain`: the value of its topology key for all of its members. */
  | { readonly kind: 'placed'; readonly id: string; readonly domain?: string }
  /** None of its members gets a place. */
  | { readonly kind: 'refused'; readonly id: string; readonly reason: PodReason }

/** A pool whose requirements leave no type that can be bought. */
export interface PoolWithoutTypes {
  readonly nodePool: string
  /** Whether there would be types without the pool's minValues. */
  readonly becauseOfMinValues: boolean
  /** What meets the pool's requirements and cannot be bought now. Absent = nothing does. */
  readonly unavailable?: readonly UnavailableOffering[]
}

/** An object of the input that could not be read, and what is wrong with it. */
export interface MalformedObject {
  readonly kind: 'NodePool' | 'InstanceType' | 'DaemonSet'
  readonly name: string
  readonly problem: string
}

/** Something that a decision can do without and that threw: a bug. The decision stands as it is without that part. */
export interface Fault {
  /** The search for a cheaper plan, the reasons of pods that find no place, or the zones told of pods. */
  readonly part: 'improvement' | 'explanation' | 'zones'
  readonly message: string
  readonly stack: string
}

/** What to launch, where pods go, and who is left. Each pod of the input is in one of the lists. */
export interface SchedulingResult {
  /** Exactly these are to be created. */
  readonly claims: readonly NewClaim[]
  readonly deferred: readonly DeferredClaim[]
  readonly placements: readonly Placement[]
  readonly failures: readonly Failure[]
  /** Pods that were not decided when the pass was stopped. */
  readonly undecided: readonly Pod[]
  /** Groups that were decided, in order of their ids. Absent = there are none. */
  readonly podGroups?: readonly PodGroupResult[]
  /** The same of pods that only stand for room, which are in no other list. Absent = there are none. */
  readonly room?: RoomResult
  readonly poolsWithoutTypes: readonly PoolWithoutTypes[]
  /** Objects other than pods that could not be read and were omitted. */
  readonly malformed: readonly MalformedObject[]
  /**
   * Zones that the rules about zones (spread, affinity, anti-affinity) left to a pod before the first
   * placement; pods without such rules are not here (scheduling.md 12.4).
   */
  readonly validZones: ReadonlyMap<Pod, ReadonlySet<string>>
  /** Known prices per hour of the new claims and those that are deferred, and what first fit alone would have cost. */
  readonly pricePerHour: number
  readonly firstFitPricePerHour: number
  readonly faults: readonly Fault[]
}
