/** Asks the engine for moves that save money (disruption.md 9 to 12). */
import { labels } from '@tenon/api'
import type { ConsolidationQuestion, ConsolidationResult, PlannedMove, PoolTotals } from '@tenon/engine'
import { evictionCost, isDaemonPod } from '../../state/pods/pods.ts'
import { labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { SchedulingDecider } from '../../decide/decider.ts'
import type { PlacementGate } from '../../placement/gate.ts'
import type { RemovalGround, RemovalSimulation } from '../simulation.ts'
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

/** What is asked of one ground. */
type Question = Pick<
  ConsolidationQuestion,
  'budgets' | 'leastSavings' | 'unchanged' | 'settled' | 'roomier' | 'together'
>

/** Where pods of candidates may go, and whether others wait for a place as well. */
export function placesOf({ input, described }: RemovalGround): Pick<SearchInput, 'nodes' | 'othersWait'> {
  const own = described.reduce((sum, { pods }) => sum + pods.length, 0)
  return { nodes: input.nodes, othersWait: input.pods.length > own }
}

/** A move waits to be confirmed; one that saves this much more by then is decided for anew. */
const outdoneBy = 2
const limitsMs = { global: 60_000, multi: 60_000, single: 3 * 60_000, together: 60_000 } as const

export class ConsolidationSearch {
  readonly #deps: Dependencies
  readonly kind: keyof typeof limitsMs
  /** NodePools that the last search did not reach. */
  #unseenPools: readonly string[] = []

  /** @param kind nodes all together, several of them, one, or those that go as a whole. */
  constructor(deps: Dependencies, kind: keyof typeof limitsMs) {
    this.#deps = deps
    this.kind = kind
  }

  /**
   * @param all every node that may be disrupted.
   * @returns undefined when there was no time at all.
   */
  async find(
    ground: RemovalGround,
    all: Pass['all'],
    question: Question,
    signal: AbortSignal,
  ): Promise<ConsolidationResult | undefined> {
    const { decider, placementGate, settings } = this.#deps
    const result = await decider.examine(
      ground.input,
      {
        kind: 'consolidate',
        search: this.kind,
        ...placementGate.improvementFor(0),
        candidates: ground.described,
        totals: this.#totals(all),
        spotToSpot: settings.featureGates.spotToSpotConsolidation,
        unseenPools: this.#unseenPools,
        ...question,
      },
      { deadlineMs: limitsMs[this.kind], signal },
    )
    return result?.kind === 'consolidation' ? result : undefined
  }

  /** The next search begins with the NodePools that this one did not reach. */
  reached({ unseenPools }: ConsolidationResult): void {
    this.#unseenPools = unseenPools
  }

  /**
   * Whether the cluster has changed so much in the meantime that the move stands in the way of a far better one:
   * while a workload is being scaled down, each look finds more to save, and nodes that receive pods are no
   * candidates for a while.
   * @param then what the move was found in: what is as it was has no better one.
   */
  async isOutdone(
    { savings }: PlannedMove,
    { budgets: budgetsNow, find, all, catalogue }: Pass,
    then: Omit<SearchInput, 'nowMs'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const candidates = await find()
    const ground = await this.#deps.simulation.ground(candidates, true, signal)
    if (ground === undefined || ground.described.length === 0) return false
    const budgets = budgetsNow()
    const leastSavings = outdoneBy * savings
    const seen = ConsolidationMemo.ofFailedSearch(then)
    const { settled, roomier } = seen.unchanged({
      candidates: ground.candidates.values(),
      budgets,
      catalogue,
      ...placesOf(ground),
      nowMs: 0,
    })
    // Groups of what is as it was are not packed again either: that is most of the work in a large cluster.
    const question = { budgets, leastSavings, unchanged: settled, settled, ...(roomier && { roomier }) }
    const result = await this.find(ground, all, question, signal)
    const best = result?.moves[0]
    return best !== undefined && best.savings >= leastSavings
  }

  /** What moves of Balanced NodePools are weighed against (disruption.md 12). */
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
