/** Figures that others keep and that metrics, pages and commands show. */
import type { LaunchScope, PricePerHour, RequestState } from '@tenon/api'
import type { GroupSource } from '../state/pods/group-of-pod.ts'

/** What the room of one CapacityBuffer comes to, and costs. */
export interface BufferFigures {
  readonly namespace: string
  readonly name: string
  /** Pods that there is to be room for. */
  readonly wanted: number
  /** Pods for which there is room on nodes that are there or on their way. */
  readonly kept: number
  /** What that part of the nodes costs; undefined when the price of one of them is not known. */
  readonly pricePerHour: PricePerHour
}

/** How many groups of pods do not run yet. */
export interface GroupFigures {
  readonly source: GroupSource
  readonly phase: 'waiting_for_members' | 'pending' | 'launching' | 'joining' | 'open'
  readonly groups: number
}

/** How many ProvisioningRequests are in a state. */
export interface RequestFigures {
  readonly class: 'check-capacity' | 'best-effort-atomic-scale-up'
  readonly state: RequestState
  readonly requests: number
}

/** What launches failed for, as shown to people. */
export interface OfferingTrouble extends LaunchScope {
  /** Failures without a success between them; those of one moment are one. */
  readonly failures: number
  /** What the last launch was refused with. */
  readonly because: string
  /** `waiting` for its time to pass, `due` for a try, or being tried by one launch: `probed`. */
  readonly phase: 'waiting' | 'due' | 'probed'
  /** Unix milliseconds: no launch before. */
  readonly untilMs: number
}
