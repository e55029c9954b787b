/** What can be asked about removing nodes, and what the answers say (disruption.md 8 to 12). */
import type { PricePerHour, Resources } from '@tenon/api'
import type { FinishedClaim } from '../scheduling/claims/finished-claims.ts'
import type { PodReason, UnavailableOffering } from '../reasons/reasons.ts'
import type { SchedulingPolicy } from '../input/input.ts'

/** A node that may go, with what a decision about it needs. */
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
  /** What moving its pods costs: 1, and more for each pod (disruption.md 4). */
  readonly disruptionCost: number
  /** What it counts against the limits of its NodePool, `nodes` included. */
  readonly capacity: Resources
  /**
   * Whether nothing is launched for its pods as long as nodes that refuse candidates' pods for now have room for
   * them; only in a global search. False unless given.
   */
  readonly waitsForBusyNodes?: boolean
  /** UIDs of the pods that must move; they are among the input's pods. */
  readonly pods: readonly string[]
}

/** Names of the nodes of each group, by a key that is the same for the same nodes in the same order. */
type KnownGroups = ReadonlyMap<string, readonly string[]>

/** What a NodePool has in all, for moves to be weighed against (disruption.md 12). */
export interface PoolTotals {
  /** Known prices per hour of its nodes. */
  readonly cost: number
  readonly disruption: number
}

/** Where would the pods go if these nodes were gone? */
export interface RemovalQuestion {
  readonly kind: 'remove'
  /** Every node whose pods are among the input's; those of nodes that stay do not move. */
  readonly candidates: readonly CandidateInput[]
  /** Names of those that are gone. */
  readonly gone: readonly string[]
}

/** Is there a set of nodes whose removal, or replacement, pays? */
export interface ConsolidationQuestion {
  readonly kind: 'consolidate'
  /**
   * `single` and `multi` are the methods of disruption.md 12 and 9. `global` looks for any number of nodes
   * to replace by any number of cheaper ones. `together` tries the sets of `together`. `survey` looks at every node
   * by itself, whatever the budgets, and decides nothing.
   */
  readonly search: 'single' | 'multi' | 'global' | 'together' | 'survey'
  readonly candidates: readonly CandidateInput[]
  /** Names of candidates of which none goes without the others of its set (gangs.md 7.5). */
  readonly together?: readonly (readonly string[])[]
  /** Nodes that may still be disrupted, by NodePool; none where a pool is not listed. */
  readonly budgets: ReadonlyMap<string, number>
  readonly totals: ReadonlyMap<string, PoolTotals>
  /** Whether spot nodes may be replaced by cheaper spot nodes. */
  readonly spotToSpot: boolean
  /** NodePools that the last search did not reach; theirs come first. */
  readonly unseenPools: readonly string[]
  /**
   * Names of candidates that are as they were when such a search found nothing for them lately: neither these alone
   * nor groups of none but these are packed again, and why they stay is not told again. A search for single nodes looks
   * at those again that have pods for a roomier node.
   */
  readonly unchanged?: ReadonlySet<string>
  /**
   * Names of candidates that are as they were when a global search found no cheaper state of all nodes together:
   * the less has changed, the less such a state is looked for.
   */
  readonly settled?: ReadonlySet<string>
  /**
   * Names of nodes that may have more room, or take other pods, than when nothing was found for settled candidates. Those
   * whose pods fit on none of these are not packed again. Absent = any node may.
   */
  readonly roomier?: ReadonlySet<string>
  /** Groups of several settled candidates that were packed again for nothing since they are as they are. */
  readonly inVain?: KnownGroups
  /** A global search may omit what saves less, per hour, and does not tell then why nodes stay. */
  readonly leastSavings?: number
  /** As of a scheduling policy: how several new nodes are planned that replace others. */
  readonly improvement?: NonNullable<SchedulingPolicy['improvement']>
}

export type DisruptionQuestion = RemovalQuestion | ConsolidationQuestion

/** Where pods go without some nodes, by indexes of the problem. */
export interface Removal {
  readonly claims: readonly FinishedClaim[]
  /** Pods that go to a node, each followed by the index of its node. */
  readonly placements: Int32Array
  /** Pods that would lose their place: all failures but those of pods that have none now. */
  readonly stranded: ReadonlyMap<number, PodReason>
  readonly isComplete: boolean
}

/** A change of the cluster that lowers its price. */
export interface Move extends Omit<Removal, 'stranded' | 'isComplete'> {
  /** Names of the nodes that go. */
  readonly candidates: readonly string[]
  /** Estimated, per hour, and no more than that: what nodes of unknown price cost is not among it. */
  readonly savings: number
  /** Pods in the order in which they have to move so that all find room; absent when any order will do. */
  readonly waves?: readonly (readonly number[])[]
}

/**
 * Why a node stays; told of single nodes, and of those that go together (disruption.md 10). `short`: with one of these offerings it would go,
 * but they are unavailable now.
 */
export type Refusal =
  | { readonly kind: 'stranded'; readonly pods: ReadonlyMap<number, PodReason> }
  | { readonly kind: 'severalNodes'; readonly count: number; readonly short?: readonly UnavailableOffering[] }
  | { readonly kind: 'minValues'; readonly missing: ReadonlyMap<string, number> }
  | { readonly kind: 'noCheaper'; readonly short?: readonly UnavailableOffering[] }
  /** Nodes that refuse candidates' pods for now have room for its pods. */
  | { readonly kind: 'busyNodes' }
  | { readonly kind: 'spotToSpotDisabled' }
  /** Too few cheaper spot types. */
  | { readonly kind: 'spotToSpotTypes'; readonly found: number }
  /** The budget of the NodePool leaves fewer nodes than go together. */
  | { readonly kind: 'budget'; readonly nodePool: string; readonly nodes: number; readonly allowed: number }
  | { readonly kind: 'undecided' }

/** What a Balanced NodePool, or one with another policy, makes of a move (disruption.md 12). */
export interface Verdict {
  readonly nodePool: string
  readonly policy: CandidateInput['policy']
  readonly score: number
  /** Shares of the NodePool's price and of its disruption cost. */
  readonly savingsFraction: number
  readonly disruptionFraction: number
  readonly isApproved: boolean
}

/** Something the search came across that users are told of. */
export type Remark =
  | { readonly kind: 'refused'; readonly node: string; readonly refusal: Refusal }
  /** A move was found possible; whether it is carried out is decided later. */
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

/** What a search for consolidation came to. */
export interface Consolidation {
  /**
   * Best first. At most one unless the search was global: then each holds whatever becomes of the others, and is carried
   * out by itself.
   */
  readonly moves: readonly Move[]
  readonly remarks: readonly Remark[]
  /** Whether the search ended before it had looked at everything. */
  readonly isTimedOut: boolean
  /** Whether a candidate was omitted because its NodePool's budget was used up. */
  readonly isLimitedByBudget: boolean
  /** Nodes that were looked at. */
  readonly examined: number
  /** NodePools with candidates that were not reached. */
  readonly unseenPools: readonly string[]
  /** Groups of several nodes that a global search has looked at, or knew to be in vain. */
  readonly groups?: KnownGroups
}

export type DisruptionAnswer =
  | { readonly kind: 'removal'; readonly removal: Removal }
  | ({ readonly kind: 'consolidation' } & Consolidation)
