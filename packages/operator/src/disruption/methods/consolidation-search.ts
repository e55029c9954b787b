/** Asks the engine for moves that save money (disruption.md 9 to 12). */
import { labels } from '@tenon/api'
import type { ConsolidationQuestion, ConsolidationResult, PlannedMove, PoolTotals } from '@tenon/engine'
import { evictionCost, isDaemonPod } from '../../state/pods/pods.ts'
import { labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { SchedulingDecider } from '../../decide/decider.ts'
import type { PlacementGate } from '../../placement/gate.ts'
import type { PreparedRemoval, RemovalSimulation } from '../simulation.ts'
import { type SearchInput, ConsolidationMemo } from './consolidation-memo.ts'
import type { Pass } from './method.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'

interface Dependencies {
  readonly decider: Pick<SchedulingDecider, 'examine'>
  readonly placementGate: Pick<PlacementGate, 'improvementFor'>
  readonly simulation: RemovalSimulation
  readonly state: Pick<ClusterState, 'podsOn' | 'poolCosts' | 'stateNodes'>
  readonly settings: Pick<Settings, 'featureGates'>
}

/** The parts of a question that differ from search to search. */
type Question = Pick<
  ConsolidationQuestion,
  'budgets' | 'leastSavings' | 'unchanged' | 'settled' | 'roomier' | 'together'
>

/** The nodes that may receive pods, and whether other pods are pending. */
export function placesOf({ input, described }: PreparedRemoval): Pick<SearchInput, 'nodes' | 'othersWait'> {
  const own = described.reduce((sum, { pods }) => sum + pods.length, 0)
  return { nodes: input.nodes, othersWait: input.pods.length > own }
}

/** While a move waits for validation, one that saves this many times as much outdoes it. */
const outdoneBy = 2
const limitsMs = { global: 60_000, multi: 60_000, single: 3 * 60_000, together: 60_000 } as const

export class ConsolidationSearch {
  readonly #deps: Dependencies
  readonly kind: keyof typeof limitsMs
  /** NodePools that the last search did not reach. */
  #unseenPools: readonly string[] = []

  /** @param kind all nodes, several, one, or nodes that go together. */
  constructor(deps: Dependencies, kind: keyof typeof limitsMs) {
    this.#deps = deps
    this.kind = kind
  }

  /**
   * @param all every node that may be disrupted.
   * @returns undefined if there was no time at all.
   */
  async find(
    prepared: PreparedRemoval,
    all: Pass['all'],
    question: Question,
    signal: AbortSignal,
  ): Promise<ConsolidationResult | undefined> {
    const { decider, placementGate, settings } = this.#deps
    const result = await decider.examine(
      prepared.input,
      {
        kind: 'consolidate',
        search: this.kind,
        ...placementGate.improvementFor(0),
        candidates: prepared.described,
        totals: this.#totals(all),
        spotToSpot: settings.featureGates.spotToSpotConsolidation,
        unseenPools: this.#unseenPools,
        ...question,
      },
      { deadlineMs: limitsMs[this.kind], signal },
    )
    return result?.kind === 'consolidation' ? result : undefined
  }

  /** Lets the next search begin with the NodePools that this one did not reach. */
  reached({ unseenPools }: ConsolidationResult): void {
    this.#unseenPools = unseenPools
  }

  /**
   * Whether the cluster has changed so much that a far better move is possible: while a workload is scaled down each
   * search finds more to save, and nodes that receive pods are no candidates for a while.
   * @param then the input in which the move was found: what has not changed since has no better one.
   */
  async isOutdone(
    { savings }: PlannedMove,
    { budgets: budgetsNow, find, all, catalogue }: Pass,
    then: Omit<SearchInput, 'nowMs'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const candidates = await find()
    const prepared = await this.#deps.simulation.prepare(candidates, true, signal)
    if (prepared === undefined || prepared.described.length === 0) return false
    const budgets = budgetsNow()
    const leastSavings = outdoneBy * savings
    const seen = ConsolidationMemo.ofFailedSearch(then)
    const { settled, roomier } = seen.unchanged({
      candidates: prepared.candidates.values(),
      budgets,
      catalogue,
      ...placesOf(prepared),
      nowMs: 0,
    })
    // Groups of unchanged candidates are left out, too: packing them is most of the work in a large cluster.
    const question = { budgets, leastSavings, unchanged: settled, settled, ...(roomier && { roomier }) }
    const result = await this.find(prepared, all, question, signal)
    const best = result?.moves[0]
    return best !== undefined && best.savings >= leastSavings
  }

  /** Total cost and disruption per NodePool, for policy Balanced (disruption.md 12). */
  #totals(all: Pass['all']): ReadonlyMap<string, PoolTotals> {
    const { state } = this.#deps
    const totals = new Map<string, { cost: number; disruption: number }>()
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
    let next = 0
    for (const instance of state.stateNodes()) {
      // Both lists are in order of name.
      while ((all[next]?.name ?? instance.name) < instance.name) next++
      const total = totals.get(labelsOf(instance)[labels.nodePool] ?? '')
      if (total === undefined) continue
      const candidate = all[next]
      total.disruption +=
        candidate?.name === instance.name ? candidate.disruptionCost : this.#disruptionCostOf(instance)
    }
    return totals
  }

  #disruptionCostOf({ node }: StateNode): number {
    if (node === undefined) return 1
    const pods = this.#deps.state.podsOn(node.metadata.name).filter((pod) => !isDaemonPod(pod))
    return pods.reduce((sum, pod) => sum + Math.max(0, evictionCost(pod)), 1)
  }
}
