/** In which state of the cluster a search found nothing to do: looking again is in vain until something changes. */
import type { Clock } from '@tenon/runtime'
import type { ConsolidationResult } from '@tenon/engine'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ConsolidationSearch } from './consolidation-search.ts'
import type { Moment } from './method.ts'
import {
  type Circumstances,
  isInVainAgain,
  isSameBudget,
  LookedAt,
  nothingUnchanged,
  scaledMs,
  type Timeless,
  type Unchanged,
} from './looked-at.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation' | 'stateNodes'>
  readonly clock: Pick<Clock, 'monotonic'>
}

interface Limited {
  readonly in: Timeless
  readonly quietMs: number
  /** When it was last seen that nothing has changed. */
  readonly seen: Moment
}

/**
 * Time alone lets nodes become candidates: those that were not are looked at again after this. What no budget limits is
 * looked at again after the longest of it in any case (disruption.md 2, trap 14).
 */
const quietLasts = { leastMs: 60_000, perCandidateMs: 200, longestMs: 5 * 60_000 }

/** A search that found nothing is not repeated before this. */
const pauseLasts = { leastMs: 0, perCandidateMs: 25, longestMs: 30_000 }

export class SearchMemory {
  readonly #deps: Dependencies
  /** What is looked at; of sets that go together it is not remembered. */
  readonly #kind: ConsolidationSearch['kind']
  /** State of the cluster in which there was nothing to do. */
  #quietAt: number | undefined
  /**
   * The same where budgets left something out: there is nothing to do before one of them leaves more or less.
   * Methods multi and single look again as soon as any candidate is another, too (disruption.md 2).
   */
  #limited: Limited | undefined
  readonly #calm = new LookedAt()
  /** What was found while other pods wait counts until they have their places, and not for longer. */
  #whileOthersWait: LookedAt | undefined
  /** Milliseconds of the monotonic clock. */
  #pausesUntilMs = Number.NEGATIVE_INFINITY
  /** Whether budgets left something out when nothing was found the last time; undefined before that. */
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

  /** The state of the cluster now: another version than before tells that it has changed. */
  now(): Moment {
    const { clock, state } = this.#deps
    return {
      version: state.consolidation.read(),
      instances: state.stateNodes(),
      atMs: clock.monotonic(),
    }
  }

  /**
   * Nothing has changed since there was nothing to do, or there was nothing to do just now.
   * @param budgets says how many more nodes may go, by NodePool.
   */
  isQuiet(budgets: () => ReadonlyMap<string, number>): boolean {
    const { atMs, instances, version } = this.now()
    if (version === this.#quietAt || atMs < this.#pausesUntilMs) return true
    const limited = this.#limited
    if (limited?.seen.version !== version) return false
    const isSame = instances === limited.seen.instances && atMs - limited.seen.atMs < limited.quietMs
    return (this.#isGlobal || isSame) && isSameBudget(budgets(), limited.in.budgets)
  }

  /**
   * Whether budgets left something out the last time, and what there was to do is still all there is.
   * @param then the state of the cluster before `now` was read.
   */
  isKnown(now: Timeless, then: Moment): boolean {
    const limited = this.#limited
    if (then.version !== limited?.seen.version) return false
    const isKnown = this.#isGlobal
      ? isSameBudget(now.budgets, limited.in.budgets)
      : isInVainAgain(now, limited.in)
    if (isKnown) this.#limited = { ...limited, seen: then }
    return isKnown
  }

  circumstances(now: Omit<Circumstances, 'nowMs'>): Circumstances {
    return { ...now, nowMs: this.#deps.clock.monotonic() }
  }

  /** What need not be looked for again. */
  unchanged(circumstances: Circumstances): Unchanged {
    return this.#remembers ? this.#lookedAt(circumstances).unchanged(circumstances) : nothingUnchanged
  }

  /**
   * Whether all there is to look at is as it was when nothing was found, with no more room than then: as if that had
   * been found again.
   * @param then the state of the cluster before the circumstances were read.
   */
  isInVain(circumstances: Circumstances, unchanged: Unchanged, then: Moment): boolean {
    if (!this.#remembers || this.#wasLimited === undefined) return false
    // Which of several nodes are tried together depends on all of them.
    const areAll = this.#kind === 'multi'
    if (!this.#lookedAt(circumstances).isInVain(circumstances, unchanged, areAll)) return false
    this.#quieten(this.#wasLimited, then, circumstances)
    this.pause(circumstances)
    return true
  }

  /**
   * Nothing was found: looking again is in vain until something changes, unless something was left out.
   * @param then the state of the cluster before the circumstances were read.
   * @param isForgetful whether a search that ran out of time is to be repeated.
   */
  nothingFound(
    { groups, isLimitedByBudget, isTimedOut }: ConsolidationResult,
    then: Moment,
    circumstances: Circumstances,
    unchanged: Unchanged,
    isForgetful: boolean,
  ): void {
    this.#limited = undefined
    const isRepeated = isTimedOut && (isLimitedByBudget || isForgetful)
    if (!isRepeated) this.#quieten(isLimitedByBudget, then, circumstances)
    if (!this.#remembers || isTimedOut) return
    this.pause(circumstances)
    this.#wasLimited = isLimitedByBudget
    this.#lookedAt(circumstances).note(circumstances, unchanged, isLimitedByBudget, groups)
  }

  #lookedAt({ nowMs, othersWait }: Circumstances): LookedAt {
    if (!othersWait) this.#whileOthersWait = undefined
    else this.#whileOthersWait ??= this.#calm.forked(nowMs)
    return this.#whileOthersWait ?? this.#calm
  }

  /** Nothing is looked for again for a while, the longer the more there is to look at. */
  pause({ candidates, nowMs }: Circumstances): void {
    this.#pausesUntilMs = nowMs + scaledMs(pauseLasts, Array.from(candidates).length)
  }

  #quieten(isLimited: boolean, then: Moment, circumstances: Circumstances): void {
    const quietMs = scaledMs(quietLasts, Array.from(circumstances.candidates).length)
    this.#limited = isLimited ? { in: circumstances, quietMs, seen: then } : undefined
    if (!isLimited) this.#quietAt = then.version
  }
}
