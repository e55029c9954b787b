/** `disruption`, methods Global, Multi, Single and Together: fewer or cheaper nodes for the same pods (disruption.md 8 to 13). */
import type { PlannedMove } from '@tenon/engine'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { type Candidate, type GroupScope, isEmpty } from '../candidates.ts'
import type { Catalogue } from '../catalogue.ts'
import { type DisruptionReport, unconsolidatableMs } from '../report.ts'
import { destinationsOf, type PreparedRemoval } from '../simulation.ts'
import type { MoveValidation } from '../validation.ts'
import { type ConsolidationSearch, placesOf } from './consolidation-search.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import type { SearchMemory } from './search-memory.ts'
import { type NodeClaim, sumOfPrices } from '@tenon/api'
import type { ClusterState } from '../../state/cluster-state.ts'
import { policyOf, type Settings } from '../../settings.ts'
import type { WholeUnits } from '../whole-units.ts'
import { type ConsolidationPolicy, unconsolidatable } from '../policy.ts'
import type { KeptPlans } from '../../placement/planned-pods.ts'
import type { CommandJournal } from '../commands/command-journal.ts'
import type { Command } from '../commands/command.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'

interface Dependencies {
  readonly admission: ConsolidationAdmission
  readonly memory: SearchMemory
  readonly search: ConsolidationSearch
  readonly validation: MoveValidation
  readonly replacements: PlannedReplacements
  readonly plans: KeptPlans
  readonly commandJournal: CommandJournal
  readonly report: DisruptionReport
  readonly payBack: PayBackDependencies
}

const reason = 'Underutilized'

const rejectionTexts = {
  budget: 'the disruption budget allows no more nodes now',
  scheduling: 'their pods do not find the same places any more',
  churn: 'they changed since the decision',
  price: 'the new nodes no longer cost less',
  unknown: 'the second look came to no result',
} as const

export class Consolidation implements DisruptionMethod {
  readonly reason = reason
  /** Label of metrics: everything but single is `multi`. */
  readonly type: 'multi' | 'single'
  readonly disruptionClass = 'graceful'
  readonly sharesReading = true
  readonly groups: GroupScope
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.type = deps.search.kind === 'single' ? 'single' : 'multi'
    this.groups = deps.admission.groups
  }

  /** There are no candidates of this kind, or nothing has changed since a search found nothing. */
  isQuiet(budgets: Pass['budgets']): boolean {
    const { admission, memory } = this.#deps
    return admission.isIdle || memory.isQuiet(budgets)
  }

  concerns(stateNode: StateNode): boolean {
    return this.#deps.admission.concerns(stateNode)
  }

  accepts(candidate: Candidate): boolean {
    return this.#deps.admission.accepts(candidate)
  }

  whole(accepted: readonly Candidate[], catalogue: Catalogue): readonly Candidate[] {
    return this.#deps.admission.whole(accepted, catalogue)
  }

  async pass(pass: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { admission, commandJournal, memory, report, search, validation } = this.#deps
    const { all, catalogue, since, begin, delay } = pass
    const budgets = pass.budgets()
    const isGlobal = search.kind === 'global'
    if (memory.isSameAsLimited({ ...pass, budgets }, since)) return 'nothing'
    const prepared = await pass.prepared()
    if (prepared === undefined) {
      report.noPools(reason)
      return 'again'
    }
    if (prepared.described.length === 0) return 'nothing'
    const candidates = isGlobal ? [...prepared.candidates.values()] : pass.candidates
    const together = admission.sets(prepared.candidates.values())
    const input = memory.inputOf({ candidates, budgets, catalogue, ...placesOf(prepared) })
    const unchanged = memory.unchanged(input)
    if (memory.wouldFindNothing(input, unchanged, since)) return 'nothing'
    const result = await search.find(
      prepared,
      all,
      { budgets, ...unchanged, ...(together && { together }) },
      signal,
    )
    if (result === undefined) return 'nothing'
    report.found(result.findings, prepared.candidates)
    if (result.isTimedOut) report.timedOut(this.type)
    search.reached(result)
    if (result.moves.length === 0) {
      memory.nothingFound(result, since, input, unchanged, this.type === 'single')
      return 'nothing'
    }
    const [best, ...others] = this.#worthwhile(result.moves, prepared)
    if (best === undefined) {
      // The moves pay back later, by time alone.
      memory.pause(input)
      return 'nothing'
    }
    await delay()
    if (isGlobal && since.version !== memory.now().version) {
      if (await search.isOutdone(best, pass, input, signal)) {
        this.#reportRejected(best, prepared, 'outdone')
        // The next pass searches the better move at once.
        return 'begun'
      }
    }
    const isPacked = isGlobal || together !== undefined
    const confirmed: PlannedMove[] = []
    for (const move of [best, ...others]) {
      const rejection = await validation.rejectionOf(move, { ...pass, isPacked, confirmed }, signal)
      if (rejection === undefined) {
        confirmed.push(move)
        continue
      }
      this.#reportRejected(move, prepared, rejection)
      commandJournal.refused({ candidates: nodesOf(move, prepared), reason }, rejectionTexts[rejection])
    }
    return await this.#begin(confirmed, prepared, together !== undefined, begin)
  }

  async #begin(
    confirmed: readonly PlannedMove[],
    prepared: PreparedRemoval,
    isWhole: boolean,
    begin: Pass['begin'],
  ): Promise<PassOutcome> {
    const { plans, replacements } = this.#deps
    for (const move of confirmed) {
      const nodes = { candidates: nodesOf(move, prepared), isWhole, reason, type: this.type } as const
      if ((await begin(commandFor(replacements, move, prepared, nodes))) !== undefined) return 'again'
      if (move.waves !== undefined) plans.keepPlacements(move.placements, prepared.input.stateNodes)
    }
    return confirmed.length > 0 ? 'begun' : 'nothing'
  }

  /** Moves that save more than their evictions cost; nodes of the others get an event. */
  #worthwhile(moves: readonly PlannedMove[], prepared: PreparedRemoval): readonly PlannedMove[] {
    const { payBack, report } = this.#deps
    return moves.filter((move) => {
      const nodes = nodesOf(move, prepared)
      const fromMs = worthFromMs(payBack, move, nodes)
      if (fromMs === undefined) return true
      const saved = move.savings.toFixed(3)
      for (const node of nodes)
        report.unconsolidatable(
          node,
          `a replacement would save ${saved} an hour, which is worth the eviction of its pods from ${rfc3339(fromMs)}`,
        )
      return false
    })
  }

  #reportRejected(
    move: PlannedMove,
    prepared: PreparedRemoval,
    rejection: keyof typeof rejectionTexts | 'outdone',
  ): void {
    const summary = { replacements: move.claims.length, savings: move.savings }
    const counts = rejection === 'churn' || rejection === 'budget'
    this.#deps.report.rejected(nodesOf(move, prepared), summary, rejection, counts ? this.type : undefined)
  }
}

function nodesOf({ candidates }: PlannedMove, prepared: PreparedRemoval): readonly Candidate[] {
  return candidates.flatMap((name) => prepared.candidates.get(name) ?? [])
}

interface PayBackDependencies {
  readonly state: Pick<ClusterState, 'recentlyFilledNodes'>
  readonly settings: Pick<Settings, 'compatibility'>
  readonly clock: Pick<Clock, 'now'>
}

/** Evicting the pods of nodes costs as much as the nodes in this time. */
const evictionMs = 15 * 60_000

/**
 * When a move that launches nodes pays back: pods are expected to live on for as long as they have lived, and in that time
 * the move must save a quarter of an hour of the price of its nodes. Nodes that pods have left, and unknown prices, do not
 * count.
 * @returns Unix milliseconds; undefined if it pays back now.
 */
function worthFromMs(
  { clock, settings, state }: PayBackDependencies,
  move: PlannedMove,
  nodes: readonly Candidate[],
): number | undefined {
  if (!policyOf(settings).sparesFreshPods || move.claims.length === 0) return undefined
  const settled = nodes.filter(({ claim }) => state.recentlyFilledNodes.has(claim.metadata.name))
  const { pricePerHour: price } = sumOfPrices(nodes.map(({ pricePerHour }) => pricePerHour))
  if (settled.length === 0 || price === 0) return undefined
  const youngestMs = Math.max(...settled.flatMap(({ movable }) => movable.map(startMs)))
  const fromMs = youngestMs + (evictionMs * price) / move.savings
  return fromMs > clock.now() ? fromMs : undefined
}

function startMs({ metadata, status }: Candidate['movable'][number]): number {
  return Date.parse(status?.startTime ?? metadata.creationTimestamp ?? '')
}

interface ConsolidationAdmissionParts {
  readonly policy: ConsolidationPolicy
  readonly report: Pick<DisruptionReport, 'unconsolidatable'>
  readonly clock: Pick<Clock, 'monotonic'>
  /** Set for nodes that go together with others. */
  readonly units?: WholeUnits
}

export class ConsolidationAdmission {
  readonly #deps: ConsolidationAdmissionParts
  /** The last event of each claim. */
  readonly #reported = new WeakMap<NodeClaim, { readonly because: string; readonly atMs: number }>()

  constructor(deps: ConsolidationAdmissionParts) {
    this.#deps = deps
  }

  get groups(): GroupScope {
    return this.#deps.units === undefined ? 'alone' : 'together'
  }

  /** Whether there is no instance of this kind. */
  get isIdle(): boolean {
    return this.#deps.units?.isEmpty ?? false
  }

  /** A cheap test whether the instance is of this kind. */
  concerns(stateNode: StateNode): boolean {
    return this.#deps.units?.has(stateNode) ?? true
  }

  /** The accepted candidates that may go. */
  whole(accepted: readonly Candidate[], catalogue: Catalogue): readonly Candidate[] {
    return this.#deps.units?.complete(accepted, catalogue, 'graceful') ?? accepted
  }

  /** Names of candidates, by sets that go together. */
  sets(candidates: Iterable<Candidate>): readonly (readonly string[])[] | undefined {
    return this.#deps.units?.setsOf([...candidates])
  }

  accepts(candidate: Candidate): boolean {
    const { policy } = this.#deps
    if (candidate.pool.spec.replicas !== undefined) return false
    const because = unconsolidatable(candidate) ?? policy.restOf(candidate)?.text
    if (because !== undefined) this.#reportReason(candidate, because)
    else if (!isEmpty(candidate))
      return policy.isInformed && policy.isAtRest(candidate) && policy.freshnessOf(candidate) === undefined
    return false
  }

  /** Records the reason, unless it was recorded lately: from pass to pass most reasons stay the same. */
  #reportReason(candidate: Candidate, because: string): void {
    const { clock, report } = this.#deps
    const { claim } = candidate
    const nowMs = clock.monotonic()
    const last = this.#reported.get(claim)
    if (last?.because === because && nowMs - last.atMs < unconsolidatableMs) return
    this.#reported.set(claim, { because, atMs: nowMs })
    report.unconsolidatable(candidate, because)
  }
}

/** @param nodes what the command is about. */
function commandFor(
  replacements: PlannedReplacements,
  move: PlannedMove,
  prepared: PreparedRemoval,
  nodes: Pick<Command, 'candidates' | 'isWhole' | 'reason' | 'type'>,
): Command {
  return {
    ...nodes,
    replacements: move.claims.map((claim) =>
      replacements.of(claim, nodes.reason, move.waves === undefined ? [] : claim.pods),
    ),
    destinations: destinationsOf(prepared, move.placements),
    savings: move.savings,
    ...(move.waves && { waves: move.waves }),
  }
}
