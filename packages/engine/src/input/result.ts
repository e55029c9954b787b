/** The result of a scheduling decision. */
import type { NodePool, Pod, PricePerHour, Requirement, Resources, Taint } from '@tenon/api'
import type { PodReason, UnavailableOffering } from '../reasons/reasons.ts'

/** A NodeClaim to create, with the pods that it is for. */
export interface NewClaim {
  /** Name of the NodePool. */
  readonly nodePool: string
  /** The NodePool as this decision saw it. */
  readonly pool: NodePool
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: readonly Requirement[]
  /** Requests of its pods, and of the daemon pods that run on all its types. */
  readonly requests: Resources
  /** Names of the types that fit, cheapest first, types of unknown price last. */
  readonly instanceTypes: readonly string[]
  /** For each resource that its NodePool or a quota limits, the largest amount of any of these types; `nodes` is 1. */
  readonly largest: Resources
  /** Names of the quotas that may count its node, sorted. Absent = none. */
  readonly quotas?: readonly string[]
  /** Names of the other quotas of the input, which do not count it. Absent = none. */
  readonly otherQuotas?: readonly string[]
  /** Price per hour of the cheapest offering of the cheapest type; undefined when no price is known. */
  readonly pricePerHour: PricePerHour
  /** Whether some minValues of the NodePool was relaxed. */
  readonly minValuesRelaxed: boolean
  /** Whether a NodeOverlay changed the price or the capacity of some listed type. */
  readonly overlaid: { readonly price: boolean; readonly capacity: boolean }
  /** Ids of the reservations that it may use, sorted; empty unless it needs reserved capacity. */
  readonly reservationIds: readonly string[]
  /** DRA drivers that its pods need on the node, sorted. */
  readonly deviceDrivers: readonly string[]
  readonly pods: readonly Pod[]
  /** Placeholder pods that it has room for besides its pods. Absent = none. */
  readonly roomPods?: readonly Pod[]
  /** Ids of the pod groups that need it to reach their minimum, sorted. Absent = none. */
  readonly podGroups?: readonly string[]
}

/** Where placeholder pods go; those on new claims are listed with the claims. */
export interface RoomResult {
  readonly placements: readonly Placement[]
  readonly failures: readonly Failure[]
  readonly undecided: readonly Pod[]
}

/** Why a claim is not created yet. */
export type Deferral =
  /** It needs offerings on trial, which another claim tries. */
  | { readonly kind: 'offeringsOnTrial' }
  /** Other claims have reserved the rest of this limit of its NodePool. */
  | { readonly kind: 'limitReserved'; readonly limit: string }
  /** The same of a quota. */
  | { readonly kind: 'quotaReserved'; readonly quota: string; readonly limit: string }

/** A claim that pods need but that is not created yet. Its pods are scheduled again by a later pass. */
export interface DeferredClaim {
  readonly claim: NewClaim
  readonly because: Deferral
}

/** A pod and the node that it goes to, which exists or is on its way. */
export interface Placement {
  readonly pod: Pod
  /** Name of the {@link NodeInput}. */
  readonly node: string
}

/** An unschedulable pod. */
export interface Failure {
  readonly pod: Pod
  readonly reason: PodReason
}

/** The result for a pod group. */
export type PodGroupResult =
  /** `domain`: the value of its topology key that all members get. */
  | { readonly kind: 'placed'; readonly id: string; readonly domain?: string }
  /** No member is placed. */
  | { readonly kind: 'refused'; readonly id: string; readonly reason: PodReason }

/** A NodePool without an available instance type. */
export interface PoolWithoutTypes {
  readonly nodePool: string
  /** Whether there would be types without its minValues. */
  readonly becauseOfMinValues: boolean
  /** Unavailable offerings that meet its requirements. Absent = none. */
  readonly unavailable?: readonly UnavailableOffering[]
}

/** An invalid object of the input, which was ignored. */
export interface MalformedObject {
  readonly kind: 'NodePool' | 'InstanceType' | 'DaemonSet'
  readonly name: string
  readonly problem: string
}

/** A bug: an optional part of the decision threw. The decision holds without this part. */
export interface Fault {
  /** The search for a cheaper plan, the reasons of unschedulable pods, or the valid zones of pods. */
  readonly part: 'improvement' | 'explanation' | 'zones'
  readonly message: string
  readonly stack: string
}

/** Claims to create, placements, and unschedulable pods. Each pod of the input is in exactly one of the lists. */
export interface SchedulingResult {
  /** The claims to create now. */
  readonly claims: readonly NewClaim[]
  readonly deferred: readonly DeferredClaim[]
  readonly placements: readonly Placement[]
  readonly failures: readonly Failure[]
  /** Pods that were not decided when the time was over. */
  readonly undecided: readonly Pod[]
  /** The decided pod groups in order of their ids. Absent = none. */
  readonly podGroups?: readonly PodGroupResult[]
  /** The same for placeholder pods, which are in no other list. Absent = none. */
  readonly room?: RoomResult
  readonly poolsWithoutTypes: readonly PoolWithoutTypes[]
  /** Invalid objects other than pods. */
  readonly malformed: readonly MalformedObject[]
  /**
   * The zones that spread constraints, affinity and anti-affinity allowed a pod before the first placement; only pods with
   * such rules about zones (scheduling.md 12.4).
   */
  readonly validZones: ReadonlyMap<Pod, ReadonlySet<string>>
  /** The sum of the known prices per hour of created and deferred claims, and the same for first fit alone. */
  readonly pricePerHour: number
  readonly firstFitPricePerHour: number
  readonly faults: readonly Fault[]
}
