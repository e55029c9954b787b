/** In which state of the cluster a search found nothing to do: looking again is in vain until something changes. */
import type { Clock } from '@tenon/runtime'
import type { ConsolidationResult } from '@tenon/engine'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import {
  type Circumstances,
  isInVainAgain,
  isSameBudget,
  LookedAt,
  nothingUnchanged,
  type Unchanged,
} from './looked-at.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/** What a search that budgets limited depended on. */
type Timeless = Omit<Circumstances, 'nowMs' | 'nodes'>

export class SearchMemory {
  readonly #deps: Dependencies
  /** Whether nodes are looked at all together; only then it is remembered what was looked at. */
  readonly #isGlobal: boolean
  /** State of the cluster in which there was nothing to do. */
  #quietAt: number | undefined
  /**
   * The same where budgets left something out: there is nothing to do before one of them leaves more or less.
   * Methods multi and single look again as soon as any candidate is another, too (disruption.md 2).
   */
  #limited: { readonly version: number; readonly in: Timeless } | undefined
  readonly #lookedAt = new LookedAt()

  constructor(deps: Dependencies, isGlobal: boolean) {
    this.#deps = deps
    this.#isGlobal = isGlobal
  }

  /** Another number than before tells that the cluster has changed. */
  version(): number {
    return this.#deps.state.consolidation.read()
  }

  /** Nothing has changed since there was nothing to do. */
  isQuiet(): boolean {
    return this.version() === this.#quietAt
  }

  /** Whether budgets left something out the last time, and what there was to do is still all there is. */
  isKnown(now: Timeless, version: number): boolean {
    if (version !== this.#limited?.version) return false
    const then = this.#limited.in
    return this.#isGlobal ? isSameBudget(now.budgets, then.budgets) : isInVainAgain(now, then)
  }

  circumstances(now: Omit<Circumstances, 'nowMs'>): Circumstances {
    return { ...now, nowMs: this.#deps.clock.monotonic() }
  }

  /** What need not be looked for again. */
  unchanged(circumstances: Circumstances): Unchanged {
    return this.#isGlobal ? this.#lookedAt.unchanged(circumstances) : nothingUnchanged
  }

  /**
   * Nothing was found: looking again is in vain until something changes, unless something was left out.
   * @param isForgetful whether a search that ran out of time is to be repeated.
   */
  nothingFound(
    { isLimitedByBudget, isTimedOut }: ConsolidationResult,
    version: number,
    circumstances: Circumstances,
    unchanged: Unchanged,
    isForgetful: boolean,
  ): void {
    this.#limited = isLimitedByBudget && !isTimedOut ? { version, in: circumstances } : undefined
    if (!isLimitedByBudget && !(isTimedOut && isForgetful)) this.#quietAt = version
    if (this.#isGlobal && !isTimedOut) this.#lookedAt.note(circumstances, unchanged, isLimitedByBudget)
  }
}
