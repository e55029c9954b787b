/** Questions about the removal of nodes, and the answers (disruption.md 8 to 12). */
import type { PricePerHour, Resources } from '@tenon/api'
import type { FinishedClaim } from '../scheduling/claims/finished-claims.ts'
import type { PodReason, UnavailableOffering } from '../reasons/reasons.ts'
import type { SchedulingPolicy } from '../input/input.ts'

/** A candidate for disruption. */
export interface CandidateInput {
  /** Name of a node of the input. */
  readonly node: string
  /** Name of its NodePool. */
  readonly nodePool: string
  readonly policy: 'WhenEmptyOrUnderutilized' | 'Balanced'
  readonly capacityType: string
  readonly instanceType: string
  /** Of its offering. */
  readonly pricePerHour: PricePerHour
  /** The cost of moving its pods: 1, plus an amount per pod (disruption.md 4). */
  readonly disruptionCost: number
  /** What it adds to the usage of its NodePool; `nodes` is 1. */
  readonly capacity: Resources
  /**
   * Whether no node is launched for its pods while nodes under `consolidateAfter` have room for them. Only
   * read by a global search. By default false.
   */
  readonly waitsForBusyNodes?: boolean
  /** UIDs of the pods that must move; the input contains them. */
  readonly pods: readonly string[]
}

/** Names of the nodes of each group, by these names joined in their order. */
type KnownGroups = ReadonlyMap<string, readonly string[]>

/** Totals of a NodePool, which Balanced weighs moves against (disruption.md 12). */
export interface PoolTotals {
  /** The sum of the known prices per hour of its nodes. */
  readonly cost: number
  readonly disruption: number
}

/** Where do the pods go if these nodes are removed? */
export interface RemovalQuestion {
  readonly kind: 'remove'
  /** All nodes whose pods the input contains. Pods of nodes that stay do not move. */
  readonly candidates: readonly CandidateInput[]
  /** Names of the removed nodes. */
  readonly gone: readonly string[]
}

/** Which nodes should be removed, or replaced by cheaper ones? */
export interface ConsolidationQuestion {
  readonly kind: 'consolidate'
  /**
   * `single` and `multi` are the methods of disruption.md 12 and 9. `global` replaces any number of nodes by any number
   * of cheaper ones. `together` tries the sets of `together`. `survey` only reports for every node what its removal
   * would need, whatever the budgets.
   */
  readonly search: 'single' | 'multi' | 'global' | 'together' | 'survey'
  readonly candidates: readonly CandidateInput[]
  /** Names of candidates that are only removed as a whole set (gangs.md 7.5). */
  readonly together?: readonly (readonly string[])[]
  /** How many more nodes of each NodePool may be disrupted; 0 for pools that are not listed. */
  readonly budgets: ReadonlyMap<string, number>
  readonly totals: ReadonlyMap<string, PoolTotals>
  /** Whether spot nodes may be replaced by cheaper spot nodes. */
  readonly spotToSpot: boolean
  /** NodePools that the last search did not reach. This search begins with them. */
  readonly unseenPools: readonly string[]
  /**
   * Candidates, by node name, that have not changed since this search last found nothing for them. They are
   * not repacked, alone or with each other, and their reasons are not reported again. A search for single
   * nodes retries those with pods that may fit on a node of `roomier`.
   */
  readonly unchanged?: ReadonlySet<string>
  /**
   * Candidates, by node name, that have not changed since a global search found no cheaper end state for all
   * nodes. The more candidates are settled, the shorter the search for such a state.
   */
  readonly settled?: ReadonlySet<string>
  /**
   * Nodes, by name, that may have more room, or accept other pods, than when the search found nothing for
   * settled candidates. Settled candidates whose pods fit on none of them are not repacked. Absent = any
   * node.
   */
  readonly roomier?: ReadonlySet<string>
  /** Groups of settled candidates for which an earlier search found no cheaper packing. */
  readonly failedGroups?: KnownGroups
  /**
   * Minimum savings per hour of a move of a global search. If set, the search does not report why nodes stay.
   */
  readonly leastSavings?: number
  /** How several replacements are packed; see `SchedulingPolicy.improvement`. */
  readonly improvement?: NonNullable<SchedulingPolicy['improvement']>
}

export type DisruptionQuestion = RemovalQuestion | ConsolidationQuestion

/** Where pods go when some nodes are removed, by indexes of the problem. */
export interface Removal {
  readonly claims: readonly FinishedClaim[]
  /** Pairs of a pod and the index of its node. */
  readonly placements: Int32Array
  /** Pods that run now and would not fit anywhere. */
  readonly stranded: ReadonlyMap<number, PodReason>
  readonly isComplete: boolean
}

/** Removes nodes, and replaces them by cheaper ones. */
export interface Move extends Omit<Removal, 'stranded' | 'isComplete'> {
  /** Names of the removed nodes. */
  readonly candidates: readonly string[]
  /** Estimate per hour; removed nodes of unknown price count as free. */
  readonly savings: number
  /** The order in which the pods must move so that all fit; absent when any order does. */
  readonly waves?: readonly (readonly number[])[]
}

/**
 * Why a node stays, or a set of nodes (disruption.md 10). `short`: unavailable offerings, any of which would make the
 * move possible.
 */
export type Refusal =
  | { readonly kind: 'stranded'; readonly pods: ReadonlyMap<number, PodReason> }
  | { readonly kind: 'severalNodes'; readonly count: number; readonly short?: readonly UnavailableOffering[] }
  | { readonly kind: 'minValues'; readonly missing: ReadonlyMap<string, number> }
  | { readonly kind: 'noCheaper'; readonly short?: readonly UnavailableOffering[] }
  /** Nodes under `consolidateAfter` have room for its pods. */
  | { readonly kind: 'busyNodes' }
  | { readonly kind: 'spotToSpotDisabled' }
  /** Fewer cheaper spot types than spot-to-spot consolidation needs. */
  | { readonly kind: 'spotToSpotTypes'; readonly found: number }
  /** The budget of the NodePool allows fewer nodes than the set has. */
  | { readonly kind: 'budget'; readonly nodePool: string; readonly nodes: number; readonly allowed: number }
  | { readonly kind: 'undecided' }

/** How the consolidation policy of a NodePool judges a move (disruption.md 12). */
export interface Verdict {
  readonly nodePool: string
  readonly policy: CandidateInput['policy']
  readonly score: number
  /** Fractions of the NodePool's price and of its disruption cost. */
  readonly savingsFraction: number
  readonly disruptionFraction: number
  readonly isApproved: boolean
}

/** A finding of a search that is reported to users. */
export type Finding =
  | { readonly kind: 'refused'; readonly node: string; readonly refusal: Refusal }
  /** A move is possible; whether it is approved is decided later. */
  | {
      readonly kind: 'possible'
      readonly nodes: readonly string[]
      readonly replacements: number
      readonly savings: number
    }
  | {
      readonly kind: 'scored'
      readonly nodes: readonly string[]
      readonly verdicts: readonly Verdict[]
      readonly isApproved: boolean
    }

/** The result of a search for consolidation. */
export interface Consolidation {
  /**
   * Best first. Only a global search returns more than one. They are independent: each stays possible whatever
   * happens to the others.
   */
  readonly moves: readonly Move[]
  readonly findings: readonly Finding[]
  /** Whether the search ended early, as its time was over. */
  readonly isTimedOut: boolean
  /** Whether a candidate was skipped because the budget of its NodePool was used up. */
  readonly isLimitedByBudget: boolean
  /** The number of examined nodes. */
  readonly examined: number
  /** NodePools with candidates that were not reached. */
  readonly unseenPools: readonly string[]
  /** Groups of nodes that a global search has tried, or skipped as it knew that they bring nothing. */
  readonly groups?: KnownGroups
}

export type DisruptionAnswer =
  | { readonly kind: 'removal'; readonly removal: Removal }
  | ({ readonly kind: 'consolidation' } & Consolidation)
