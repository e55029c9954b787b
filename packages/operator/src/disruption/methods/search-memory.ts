/** When a search for consolidation is worth repeating: one that found nothing is not, until something changes. */
import type { Clock } from '@tenon/runtime'
import type { ConsolidationResult } from '@tenon/engine'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ConsolidationSearch } from './consolidation-search.ts'
import type { Moment } from './method.ts'
import {
  type SearchInput,
  isSameSearch,
  isSameBudget,
  ConsolidationMemo,
  nothingUnchanged,
  scaledMs,
  type SearchKey,
  type Unchanged,
} from './consolidation-memo.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation' | 'stateNodes'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/** A search from which budgets excluded moves. */
interface LimitedSearch {
  readonly key: SearchKey
  readonly quietMs: number
  /** When the cluster was last seen unchanged. */
  readonly seen: Moment
}

/**
 * Nodes become candidates by time alone, so a search limited by budgets is repeated after this even if nothing changed
 * (disruption.md 2, trap 14).
 */
const quietLasts = { leastMs: 60_000, perCandidateMs: 200, longestMs: 5 * 60_000 }

/** The least time between two searches. */
const pauseLasts = { leastMs: 0, perCandidateMs: 25, longestMs: 30_000 }

export class SearchMemory {
  readonly #deps: Dependencies
  /** Searches of kind `together` are not remembered. */
  readonly #kind: ConsolidationSearch['kind']
  /** Version of the cluster state at which a search without limits found nothing. */
  #quietAt: number | undefined
  /**
   * The last search that budgets limited: repeated once a budget allows another number of nodes; by methods multi and
   * single also once a candidate changes (disruption.md 2).
   */
  #limited: LimitedSearch | undefined
  readonly #memo = new ConsolidationMemo()
  /** Used while other pods are pending, which prevent moves; dropped once they are placed. */
  #memoWhileOthersWait: ConsolidationMemo | undefined
  /** Milliseconds of the monotonic clock. */
  #pausesUntilMs = Number.NEGATIVE_INFINITY
  /** Whether budgets limited the last search that found nothing; undefined before the first. */
  #wasLimited: boolean | undefined

  constructor(deps: Dependencies, kind: ConsolidationSearch['kind']) {
    this.#deps = deps
    this.#kind = kind
  }

  get #isGlobal(): boolean {
    return this.#kind === 'global'
  }

  get #remembers(): boolean {
    return this.#kind !== 'together'
  }

  now(): Moment {
    const { clock, state } = this.#deps
    return {
      version: state.consolidation.read(),
      instances: state.stateNodes(),
      atMs: clock.monotonic(),
    }
  }

  /**
   * Whether a pass can end at once: nothing has changed since a search found nothing, or that search was a moment ago.
   * @param budgets how many more nodes may go, by NodePool.
   */
  isQuiet(budgets: () => ReadonlyMap<string, number>): boolean {
    const { atMs, instances, version } = this.now()
    if (version === this.#quietAt || atMs < this.#pausesUntilMs) return true
    const limited = this.#limited
    if (limited?.seen.version !== version) return false
    const isSame = instances === limited.seen.instances && atMs - limited.seen.atMs < limited.quietMs
    return (this.#isGlobal || isSame) && isSameBudget(budgets(), limited.key.budgets)
  }

  /**
   * Whether the last search was limited by budgets and would be the same now.
   * @param then the state of the cluster before `now` was read.
   */
  isSameAsLimited(now: SearchKey, then: Moment): boolean {
    const limited = this.#limited
    if (then.version !== limited?.seen.version) return false
    const isSame = this.#isGlobal
      ? isSameBudget(now.budgets, limited.key.budgets)
      : isSameSearch(now, limited.key)
    if (isSame) this.#limited = { ...limited, seen: then }
    return isSame
  }

  inputOf(now: Omit<SearchInput, 'nowMs'>): SearchInput {
    return { ...now, nowMs: this.#deps.clock.monotonic() }
  }

  unchanged(input: SearchInput): Unchanged {
    return this.#remembers ? this.#memoFor(input).unchanged(input) : nothingUnchanged
  }

  /**
   * Whether a search would find nothing again. If so, that counts as a search that found nothing.
   * @param then the state of the cluster before the input was read.
   */
  wouldFindNothing(input: SearchInput, unchanged: Unchanged, then: Moment): boolean {
    if (!this.#remembers || this.#wasLimited === undefined) return false
    // Which nodes are tried together depends on all candidates.
    const areAll = this.#kind === 'multi'
    if (!this.#memoFor(input).wouldFindNothing(input, unchanged, areAll)) return false
    this.#quieten(this.#wasLimited, then, input)
    this.pause(input)
    return true
  }

  /**
   * Stores that a search found nothing.
   * @param then the state of the cluster before the input was read.
   * @param isForgetful whether a search that ran out of time is repeated.
   */
  nothingFound(
    { groups, isLimitedByBudget, isTimedOut }: ConsolidationResult,
    then: Moment,
    input: SearchInput,
    unchanged: Unchanged,
    isForgetful: boolean,
  ): void {
    this.#limited = undefined
    const isRepeated = isTimedOut && (isLimitedByBudget || isForgetful)
    if (!isRepeated) this.#quieten(isLimitedByBudget, then, input)
    if (!this.#remembers || isTimedOut) return
    this.pause(input)
    this.#wasLimited = isLimitedByBudget
    this.#memoFor(input).note(input, unchanged, isLimitedByBudget, groups)
  }

  #memoFor({ nowMs, othersWait }: SearchInput): ConsolidationMemo {
    if (!othersWait) this.#memoWhileOthersWait = undefined
    else this.#memoWhileOthersWait ??= this.#memo.forked(nowMs)
    return this.#memoWhileOthersWait ?? this.#memo
  }

  /** Searches nothing for a while; longer if there are more candidates. */
  pause({ candidates, nowMs }: SearchInput): void {
    this.#pausesUntilMs = nowMs + scaledMs(pauseLasts, Array.from(candidates).length)
  }

  #quieten(isLimited: boolean, then: Moment, input: SearchInput): void {
    const quietMs = scaledMs(quietLasts, Array.from(input.candidates).length)
    this.#limited = isLimited ? { key: input, quietMs, seen: then } : undefined
    if (!isLimited) this.#quietAt = then.version
  }
}
