/**
 * Global consolidation: replaces any number of nodes by any number of cheaper ones. Nodes whose pods are placed by
 * resources alone move towards the cheapest end state of all of them (end-state.ts). Of the other nodes, as many as possible
 * are removed whose pods fit elsewhere. If none can be removed, groups of wasteful nodes are packed again.
 */
import type { NodeInput } from '../input/input.ts'
import { amountsFit } from '../scheduling/pods/resource-space.ts'
import type { Simulation } from '../scheduling/simulation.ts'
import { LeastPrice } from '../scheduling/packing/least-price.ts'
import { independentMoves, type Repacking } from './independent-moves.ts'
import { verdictsOn } from './balanced.ts'
import { affectedCandidates } from './affected-candidates.ts'
import { cheapestStates, type EndState } from './end-state.ts'
import { type Fleet, fleetOf, wasteOf } from './fleet.ts'
import { MoveFinder, type MoveOutcome, priceOf } from './move.ts'
import type { CandidateInput, Consolidation, ConsolidationQuestion, Move, Finding } from './question.ts'
import { survey } from './single.ts'
import { type Candidate, bySavings, type WhatIf } from './what-if.ts'
import type { SchedulingControl } from '../scheduling/pace.ts'

/** Sizes of the groups that are repacked. */
const groupSizes = [1, 2, 3, 4, 6, 8, 12, 16]
/** How many groups of each size are tried, the most wasteful nodes first. Single nodes are all tried. */
const groupsOfSize = 12
/** The share of its price that repacking a group must save, as moving pods has a cost too. */
const leastShare = 0.03
/** Each new node must save this share more of the price that it replaces. */
const sharePerLaunch = 0.01
/** Maximum moves of one search. */
const mostMoves = 32
const leastOfBest = 0.25

const noCheaper: MoveOutcome = { kind: 'refused', refusal: { kind: 'noCheaper' } }

/** Nodes with the lowest price per disruption cost first, so that pods gather on the nodes worth keeping. */
export function keepersFirst(candidates: readonly CandidateInput[]): (a: NodeInput, b: NodeInput) => number {
  const ratios = new Map(
    candidates.map(({ node, pricePerHour = 0, disruptionCost }) => [node, pricePerHour / disruptionCost]),
  )
  const ratio = ({ name }: NodeInput) => ratios.get(name) ?? Number.NEGATIVE_INFINITY
  return (a, b) => {
    if (a.initialized !== b.initialized) return a.initialized ? -1 : 1
    return ratio(a) - ratio(b) || (a.name < b.name ? -1 : 1)
  }
}

export function searchGlobal(
  whatIf: WhatIf,
  question: ConsolidationQuestion,
  control: SchedulingControl,
): Consolidation {
  const search = new GlobalSearch(whatIf, question, control)
  return search.run()
}

class GlobalSearch {
  readonly #whatIf: WhatIf
  readonly #question: ConsolidationQuestion
  readonly #control: SchedulingControl
  readonly #finder: MoveFinder
  readonly #leastPrice: LeastPrice
  readonly #findings: Finding[] = []
  /** Names of nodes that would be replaced if nodes under `consolidateAfter` had no room for their pods. */
  readonly #waiting = new Set<string>()
  #isLimitedByBudget = false
  #examined = 0
  /** Groups of several nodes that were tried. */
  readonly #groups = new Map<string, readonly string[]>()
  /** Settled candidates that a change elsewhere may affect. */
  readonly #affected: ReadonlySet<Candidate>

  constructor(whatIf: WhatIf, question: ConsolidationQuestion, control: SchedulingControl) {
    this.#whatIf = whatIf
    this.#question = question
    this.#control = control
    this.#leastPrice = new LeastPrice(whatIf.compiled.finisher)
    this.#affected = new Set(affectedCandidates(whatIf, question))
    const mostClaims = Math.max(...groupSizes)
    this.#finder = new MoveFinder(whatIf, {
      spotToSpot: question.spotToSpot,
      mostClaims,
      guardSameTypes: true,
    })
  }

  run(): Consolidation {
    const fleet = fleetOf(this.#whatIf)
    const state = fleet && this.#endState(fleet)
    const moves = state === undefined ? this.#elsewhere(fleet) : [state]
    if (moves.length === 0 && this.#question.leastSavings === undefined) this.#reportRefusals()
    return {
      moves,
      findings: this.#findings,
      isTimedOut: this.#control.shouldStop(),
      isLimitedByBudget: this.#isLimitedByBudget,
      examined: this.#examined,
      unseenPools: [],
      groups: this.#groups,
    }
  }

  /** The move to the cheapest end state that is possible and approved. */
  #endState(fleet: Fleet): Move | undefined {
    const { states, isLimitedByBudget } = cheapestStates(fleet, this.#question, () =>
      this.#control.shouldStop(),
    )
    this.#examined += fleet.instances.filter(({ candidate }) => candidate !== undefined).length
    this.#isLimitedByBudget ||= isLimitedByBudget
    for (const state of states) {
      const outcome = this.#moveTo(state, fleet)
      if (outcome.kind === 'refused') continue
      const inputs = state.gone.map(({ input }) => input)
      this.#reportPossible(outcome.move)
      if (this.#isApproved(inputs, outcome.move)) return { ...outcome.move, waves: state.waves }
    }
    return undefined
  }

  #moveTo({ gone, homes, launches }: EndState, { class: ofClass }: Fleet): MoveOutcome {
    const { classes } = this.#whatIf.compiled
    const bins =
      ofClass === undefined
        ? []
        : launches.map(({ type, pods }) => {
            // kube-scheduler chooses the node of each pod, so every type of the claim needs as much room as the
            // planned one.
            const rows = ofClass.rows.filter(({ room }) => amountsFit(type.free, room))
            return { pods, class: classes.restricted(ofClass, rows) }
          })
    return this.#whatIf.without(
      gone,
      (simulation) => {
        if (bins.length > 0) simulation.rearrange(bins)
        return { ending: 'undo', value: this.#judge(gone, simulation) }
      },
      homes,
    )
  }

  /** Moves of nodes whose pods are not placed by resources alone. */
  #elsewhere(fleet: Fleet | undefined): readonly Move[] {
    if (fleet?.isWhole === true && fleet.class !== undefined) return []
    const known = new Set(fleet?.instances.map(({ candidate }) => candidate))
    const sorted = this.#whatIf.candidates.toSorted(bySavings)
    const fewest = this.#fewest(
      sorted.filter((candidate) => !known.has(candidate) && !this.#isKnownToFail([candidate])),
    )
    if (fewest !== 'noneCanGo') return fewest === 'rejected' ? [] : [fewest]
    return this.#cheapest(sorted)
  }

  /** Removes as many nodes as possible without a new one; `rejected` when the policy does not approve. */
  #fewest(sorted: readonly Candidate[]): Move | 'noneCanGo' | 'rejected' {
    const homes = new Map<number, number>()
    const gone = this.#whatIf.trial(() => this.#oneByOne(sorted, homes))
    // Topology rules may allow each removal in turn, but not all at once.
    for (let count = gone.length; count > 0; count >>= 1) {
      const some = gone.slice(0, count)
      const placements = this.#together(some, homes)
      if (placements === undefined) continue
      const inputs = some.map(({ input }) => input)
      const candidates = inputs.map(({ node }) => node)
      const move: Move = { candidates, claims: [], placements, savings: priceOf(some) }
      return this.#isApproved(inputs, move) ? move : 'rejected'
    }
    return 'noneCanGo'
  }

  /**
   * Nodes that can be removed one after the other.
   * @param homes receives the nodes that their pods go to.
   */
  #oneByOne(sorted: readonly Candidate[], homes: Map<number, number>): readonly Candidate[] {
    const budget = this.#budget()
    const gone: Candidate[] = []
    for (const candidate of sorted) {
      if (this.#control.shouldStop()) break
      // A node stays if the pods of a removed node go there.
      if (candidate.node.pods.length > 0 || !budget.allows([candidate])) continue
      this.#examined++
      const isGone = this.#whatIf.without([candidate], (simulation) => {
        const fits = this.#fits(simulation)
        if (fits) for (const [pod, node] of simulation.nodeOf) homes.set(pod, node)
        return { ending: fits ? 'keep' : 'undo', value: fits }
      })
      if (!isGone) continue
      budget.spend([candidate])
      gone.push(candidate)
    }
    this.#isLimitedByBudget ||= budget.isSpent
    return gone
  }

  /** Where the pods of all these nodes go, if all fit at once. */
  #together(gone: readonly Candidate[], homes: ReadonlyMap<number, number>): Int32Array | undefined {
    return this.#whatIf.without(
      gone,
      (simulation) => {
        // Pending pods that are placed on a starting node are not part of the move.
        const early = new Set(simulation.prematurelyPlaced)
        const placed = [...simulation.nodeOf].filter(([pod]) => !early.has(pod))
        const value = this.#fits(simulation) ? Int32Array.from(placed.flat()) : undefined
        return { ending: 'undo', value }
      },
      homes,
    )
  }

  #fits(simulation: Simulation): boolean {
    return (
      simulation.isComplete &&
      simulation.claims.length === 0 &&
      this.#whatIf.stranded(simulation).length === 0
    )
  }

  /** Repacks groups of nodes. Returns the move that saves the most, and others that are independent of it. */
  #cheapest(sorted: readonly Candidate[]): readonly Move[] {
    const budget = this.#budget()
    const wasteful = sorted
      .map((candidate) => ({ candidate, waste: wasteOf(candidate) }))
      .toSorted((a, b) => b.waste - a.waste || (a.candidate.input.node < b.candidate.input.node ? -1 : 1))
      .map(({ candidate }) => candidate)
    const found: Repacking[] = []
    let most = 0
    const { leastSavings = 0 } = this.#question
    for (const group of groupsFrom(wasteful)) {
      if (this.#control.shouldStop()) break
      if (!budget.allows(group) || this.#isUnchanged(group)) continue
      if (group.length > 1) this.#groups.set(keyOf(group), namesOf(group))
      if (this.#isKnownToFail(group)) continue
      const price = priceOf(group)
      const least = Math.max(leastShare * price, leastOfBest * most, leastSavings)
      if (price < least) continue
      this.#examined++
      const outcome = this.#packedAnew(group, least)
      if (outcome.kind === 'refused') continue
      const { move } = outcome
      const worth = move.savings - price * sharePerLaunch * move.claims.length
      if (move.savings < least || worth <= leastOfBest * most) continue
      const inputs = group.map(({ input }) => input)
      if (!this.#isApproved(inputs, move)) continue
      found.push({ nodes: group, move, worth })
      most = Math.max(most, worth)
    }
    this.#isLimitedByBudget ||= budget.isSpent
    const moves = independentMoves(this.#whatIf, found, this.#budget(), mostMoves)
    for (const move of moves) this.#reportPossible(move)
    return moves
  }

  /** Reports why each node stays. A node that could be replaced alone is reported as not saving enough. */
  #reportRefusals(): void {
    // Candidates in `settled` are reported too, so that their reasons do not expire; only `unchanged` ones are
    // left out.
    const candidates = this.#whatIf.candidates.filter((candidate) => !this.#isUnchanged([candidate]))
    const { findings } = survey(this.#whatIf, this.#question, this.#control, candidates)
    for (const finding of findings) {
      if (finding.kind === 'refused') this.#findings.push(finding)
      if (finding.kind !== 'possible') continue
      for (const node of finding.nodes)
        this.#findings.push({
          kind: 'refused',
          node,
          refusal: { kind: this.#waiting.has(node) ? 'busyNodes' : 'noCheaper' },
        })
    }
  }

  #isUnchanged(group: readonly Candidate[]): boolean {
    const { unchanged } = this.#question
    return unchanged !== undefined && group.every(({ input }) => unchanged.has(input.node))
  }

  /** Whether an earlier search found nothing for these nodes, and no change since then concerns their pods. */
  #isKnownToFail(group: readonly Candidate[]): boolean {
    const { settled, roomier, failedGroups } = this.#question
    if (settled === undefined || roomier === undefined) return false
    // A group that is not in the memo may never have been tried as a group.
    if (group.length > 1 && failedGroups?.has(keyOf(group)) !== true) return false
    return group.every((candidate) => settled.has(candidate.input.node) && !this.#affected.has(candidate))
  }

  #reportPossible({ candidates: nodes, claims, savings }: Move): void {
    if (claims.length > 0)
      this.#findings.push({ kind: 'possible', nodes, replacements: claims.length, savings })
  }

  /** @param least the savings that the move must reach. Plans that cannot reach them are not computed. */
  #packedAnew(group: readonly Candidate[], least: number): MoveOutcome {
    const { improvement } = this.#question
    const most = priceOf(group) - least
    return this.#whatIf.without(group, (simulation) => {
      const { claims } = simulation
      const isHopeless =
        this.#whatIf.stranded(simulation).length > 0 || this.#leastPrice.exceeds(most, claims)
      if (improvement !== undefined && simulation.isComplete && claims.length > 0 && !isHopeless)
        simulation.regroup(improvement, () => this.#control.shouldStop())
      const isDear = simulation.isComplete && simulation.cost.pricePerHour > most
      return { ending: 'undo', value: isDear ? noCheaper : this.#judge(group, simulation) }
    })
  }

  #judge(candidates: readonly Candidate[], simulation: Simulation): MoveOutcome {
    const outcome = this.#finder.judge(candidates, simulation)
    if (outcome.kind === 'refused' || candidates.every(({ input }) => input.waitsForBusyNodes !== true))
      return outcome
    if (!this.#whatIf.hasClaimForBusyNodes(simulation)) return outcome
    for (const { input } of candidates) this.#waiting.add(input.node)
    return { kind: 'refused', refusal: { kind: 'busyNodes' } }
  }

  #isApproved(inputs: readonly CandidateInput[], move: Move): boolean {
    const verdicts = verdictsOn(inputs, move.savings, this.#question.totals)
    const isApproved = verdicts.every((verdict) => verdict.isApproved)
    this.#findings.push({ kind: 'scored', nodes: move.candidates, verdicts, isApproved })
    return isApproved
  }

  #budget(): Budget {
    return new Budget(this.#question.budgets)
  }
}

/**
 * Groups of nodes to repack. A quarter of the nodes of each group is new: large groups that share more nodes would give
 * almost the same result.
 * @param wasteful the most wasteful first.
 */
function* groupsFrom(wasteful: readonly Candidate[]): Generator<readonly Candidate[], void, undefined> {
  for (const size of groupSizes) {
    const groups = size === 1 ? wasteful.length : groupsOfSize
    const step = Math.ceil(size / 4)
    for (let start = 0; start < groups * step && start + size <= wasteful.length; start += step)
      yield wasteful.slice(start, start + size)
  }
}

const namesOf = (group: readonly Candidate[]): readonly string[] => group.map(({ input }) => input.node)

/** Equal for the same nodes in the same order. */
const keyOf = (group: readonly Candidate[]): string => namesOf(group).join(' ')

/** Disruptions that budgets still allow, by NodePool. */
class Budget {
  readonly #left: Map<string, number>
  isSpent = false

  constructor(budgets: ReadonlyMap<string, number>) {
    this.#left = new Map(budgets)
  }

  allows(candidates: readonly Candidate[]): boolean {
    const counts = new Map<string, number>()
    for (const { input } of candidates) counts.set(input.nodePool, (counts.get(input.nodePool) ?? 0) + 1)
    const isAllowed = [...counts].every(([pool, count]) => (this.#left.get(pool) ?? 0) >= count)
    this.isSpent ||= !isAllowed
    return isAllowed
  }

  spend(candidates: readonly Candidate[]): void {
    for (const { input } of candidates)
      this.#left.set(input.nodePool, (this.#left.get(input.nodePool) ?? 0) - 1)
  }
}
