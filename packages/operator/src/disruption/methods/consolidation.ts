/** `disruption`, methods Global, Multi and Single: fewer or cheaper nodes for the same pods (disruption.md 8 to 13). */
import type { Clock, Logger, Random, Turns } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import type { EventRecorder, KubeClient } from '@tenon/kube'
import { labels, type NodeClaim } from '@tenon/api'
import type { ConsolidationQuestion, ConsolidationResult, PlannedMove, PoolTotals } from '@tenon/engine'
import { evictionCost, isDaemonPod } from '../../cluster/pods/pods.ts'
import { labelsOf } from '../../cluster/nodes/state-node.ts'
import { remainingDisruptions } from '../budget.ts'
import { type Candidate, isEmpty } from '../candidates.ts'
import { keepRemarks } from '../explain.ts'
import { type Circumstances, isInVainAgain, isSameBudget, LookedAt, nothingUnchanged } from './looked-at.ts'
import type { DisruptionMethod, Pass } from './method.ts'
import { plannedReplacement } from '../commands/planned-replacement.ts'
import { freshnessOf, isAtRest, restOf, unconsolidatable } from '../policy.ts'
import { tellRejected, tellRemarks, tellUnconsolidatable, unconsolidatableMs } from '../remarks.ts'
import { destinationsOf, keepHomes, type RemovalGround, removalGround } from '../simulation.ts'
import { rejectionOf } from '../validation.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { SchedulingDecider } from '../../decider/decider.ts'
import type { PlacementGate } from '../../placement/gate.ts'
import type { DisruptionAnswers } from '../answers.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  readonly answers: DisruptionAnswers
  readonly metrics: Metrics
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

const reason = 'Underutilized'
/** A move waits to be confirmed; one that saves this much more by then is decided for anew. */
const outdoneBy = 2
const limitsMs = { global: 60_000, multi: 60_000, single: 3 * 60_000 } as const

export class Consolidation implements DisruptionMethod {
  readonly reason = reason
  readonly type: 'multi' | 'single'
  readonly disruptionClass = 'graceful'
  readonly #deps: Dependencies
  readonly #search: 'global' | 'multi' | 'single'
  /** State of the cluster in which there was nothing to do. */
  #quietAt: number | undefined
  /**
   * The same where budgets left something out: there is nothing to do before one of them leaves more or less.
   * Methods multi and single look again as soon as any candidate is another, too (disruption.md 2).
   */
  #limited: { readonly version: number; readonly in: Omit<Circumstances, 'nowMs'> } | undefined
  readonly #lookedAt = new LookedAt()
  /** What was told last of each claim, as it is now. */
  readonly #told = new WeakMap<NodeClaim, { readonly because: string; readonly atMs: number }>()
  /** NodePools that the last search did not reach. */
  #unseenPools: readonly string[] = []

  /** @param search metrics count what a global search finds as `multi`. */
  constructor(deps: Dependencies, search: 'global' | 'multi' | 'single') {
    this.#deps = deps
    this.#search = search
    this.type = search === 'single' ? 'single' : 'multi'
    deps.metrics.consolidationTimeouts.inc({ consolidation_type: this.type }, 0)
  }

  /** Nothing has changed since there was nothing to do. */
  isQuiet(): boolean {
    return this.#deps.state.consolidation.read() === this.#quietAt
  }

  concerns(): boolean {
    return true
  }

  accepts(candidate: Candidate): boolean {
    if (candidate.pool.spec.replicas !== undefined) return false
    const because = unconsolidatable(candidate) ?? restOf(this.#deps, candidate)
    if (because !== undefined) this.#tellWhyNot(candidate, because)
    else if (!isEmpty(candidate))
      return isAtRest(this.#deps, candidate) && freshnessOf(this.#deps, candidate) === undefined
    return false
  }

  /** From pass to pass the same is true of nearly all nodes, and has been told. */
  #tellWhyNot(candidate: Candidate, because: string): void {
    const { claim } = candidate
    const nowMs = this.#deps.clock.monotonic()
    const told = this.#told.get(claim)
    if (told?.because === because && nowMs - told.atMs < unconsolidatableMs) return
    this.#told.set(claim, { because, atMs: nowMs })
    tellUnconsolidatable(this.#deps, candidate, because)
  }

  async pass(pass: Pass, signal: AbortSignal): Promise<boolean> {
    const deps = this.#deps
    const { all, catalogue, find, begin } = pass
    const version = deps.state.consolidation.read()
    const budgets = remainingDisruptions(deps, reason)
    const isGlobal = this.#search === 'global'
    if (this.#isKnown({ ...pass, budgets }, version)) return false
    const ground = await pass.ground()
    if (ground.described.length === 0) return false
    const candidates = isGlobal ? [...ground.candidates.values()] : pass.candidates
    const circumstances = { candidates, budgets, catalogue, nowMs: deps.clock.monotonic() }
    const unchanged = isGlobal ? this.#lookedAt.unchanged(circumstances) : nothingUnchanged
    const result = await this.#examined(ground, all, { budgets, ...unchanged }, signal)
    if (result === undefined) return false
    tellRemarks(deps, result.remarks, ground.candidates)
    keepRemarks(deps, result.remarks)
    if (result.isTimedOut) deps.metrics.consolidationTimeouts.inc({ consolidation_type: this.type })
    this.#unseenPools = result.unseenPools
    const [move] = result.moves
    if (move === undefined) {
      this.#remember(result, version, circumstances)
      if (isGlobal && !result.isTimedOut)
        this.#lookedAt.note(circumstances, unchanged, result.isLimitedByBudget)
      return false
    }
    const nodes = move.candidates.flatMap((name) => ground.candidates.get(name) ?? [])
    await deps.clock.sleep(deps.settings.validationDelayMs, signal)
    const rejection =
      isGlobal &&
      version !== deps.state.consolidation.read() &&
      (await this.#isOutdone(move, pass, circumstances, signal))
        ? 'outdone'
        : await rejectionOf(deps, move, find, isGlobal, signal)
    if (rejection !== undefined) {
      tellRejected(deps, nodes, { replacements: move.claims.length, savings: move.savings }, rejection)
      if (rejection === 'churn' || rejection === 'budget')
        deps.metrics.failedValidations.inc({ consolidation_type: this.type }, nodes.length)
      // The better move is looked for at once.
      return rejection === 'outdone'
    }
    await begin({
      reason,
      type: this.type,
      candidates: nodes,
      replacements: move.claims.map((claim) =>
        plannedReplacement(deps, claim, reason, move.waves === undefined ? [] : claim.pods),
      ),
      destinations: destinationsOf(ground, move.placements),
      savings: move.savings,
      ...(move.waves && { waves: move.waves }),
    })
    if (move.waves !== undefined) keepHomes(deps, ground, move.placements)
    return true
  }

  /** Whether budgets left something out the last time, and what there was to do is still all there is. */
  #isKnown(now: Omit<Circumstances, 'nowMs'>, version: number): boolean {
    if (version !== this.#limited?.version) return false
    const then = this.#limited.in
    return this.#search === 'global' ? isSameBudget(now.budgets, then.budgets) : isInVainAgain(now, then)
  }

  async #examined(
    ground: RemovalGround,
    all: Pass['all'],
    question: Pick<ConsolidationQuestion, 'budgets' | 'leastSavings' | 'unchanged' | 'settled'>,
    signal: AbortSignal,
  ): Promise<ConsolidationResult | undefined> {
    const { decider, placementGate, settings } = this.#deps
    const result = await decider.examine(
      ground.input,
      {
        kind: 'consolidate',
        search: this.#search,
        ...placementGate.improvementFor(0),
        candidates: ground.described,
        totals: this.#totals(all),
        spotToSpot: settings.featureGates.spotToSpotConsolidation,
        unseenPools: this.#unseenPools,
        ...question,
      },
      { deadlineMs: limitsMs[this.#search], signal },
    )
    return result?.kind === 'consolidation' ? result : undefined
  }

  /**
   * Whether the cluster has changed so much in the meantime that the move stands in the way of a far better one:
   * while a workload is being scaled down, each look finds more to save, and nodes that receive pods are no
   * candidates for a while.
   * @param then what the move was found in: what is as it was has no better one.
   */
  async #isOutdone(
    { savings }: PlannedMove,
    { find, all, catalogue }: Pass,
    then: Omit<Circumstances, 'nowMs'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const candidates = await find()
    const ground = await removalGround(this.#deps, candidates, true, signal)
    if (ground.described.length === 0) return false
    const budgets = remainingDisruptions(this.#deps, reason)
    const leastSavings = outdoneBy * savings
    const seen = LookedAt.inVain(then)
    const { settled } = seen.unchanged({
      candidates: ground.candidates.values(),
      budgets,
      catalogue,
      nowMs: 0,
    })
    const result = await this.#examined(ground, all, { budgets, leastSavings, settled }, signal)
    const best = result?.moves[0]
    return best !== undefined && best.savings >= leastSavings
  }

  /** Looking again is in vain until something changes, unless something was left out. */
  #remember(
    { isLimitedByBudget, isTimedOut }: ConsolidationResult,
    version: number,
    circumstances: Circumstances,
  ): void {
    this.#limited = isLimitedByBudget && !isTimedOut ? { version, in: circumstances } : undefined
    if (!isLimitedByBudget && !(isTimedOut && this.type === 'single')) this.#quietAt = version
  }

  /** What moves of Balanced NodePools are weighed against (disruption.md 12). */
  #totals(all: Pass['all']): ReadonlyMap<string, PoolTotals> {
    const { state } = this.#deps
    const totals = new Map<string, { cost: number; disruption: number }>()
    const known = new Map(all.map((candidate) => [candidate.name, candidate]))
    for (const candidate of all) {
      const name = candidate.pool.metadata.name
      if (!totals.has(name)) totals.set(name, { cost: 0, disruption: 0 })
      const total = totals.get(name)
      if (total !== undefined) total.cost += candidate.pricePerHour ?? 0
    }
    for (const [name, total] of totals) {
      const tracked = state.poolCosts.of(name).pricePerHour
      if (tracked > 0) total.cost = tracked
    }
    for (const instance of state.stateNodes()) {
      const total = totals.get(labelsOf(instance)[labels.nodePool] ?? '')
      if (total === undefined) continue
      const { node } = instance
      const pods =
        node === undefined ? [] : state.podsOn(node.metadata.name).filter((pod) => !isDaemonPod(pod))
      total.disruption +=
        known.get(instance.name)?.disruptionCost ??
        pods.reduce((sum, pod) => sum + Math.max(0, evictionCost(pod)), 1)
    }
    return totals
  }
}
