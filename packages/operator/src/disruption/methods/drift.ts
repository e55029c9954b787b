/** `disruption`, method Drift: replaces drifted nodes, one after the other (disruption.md 8). */
import { type StateNode, transitionMs } from '../../state/nodes/state-node.ts'
import { type Candidate, reportBlocked } from '../candidates.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import { type ReplacedSets, replaceFirst } from './replace-first.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import type { NodeLimitParts } from '../node-limits.ts'
import type { DisruptionReport } from '../report.ts'
import type { RemovalSimulation } from '../simulation.ts'
import { overdrawnBudget } from '@tenon/engine/consolidation'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type GroupUnit, groupUnits } from '../group-units.ts'
import { refusalText } from '../refusals.ts'
import { unitsOf, type WholeUnits } from '../whole-units.ts'
import type { Catalogue } from '../catalogue.ts'
import { isConditionTrue } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'

interface Dependencies extends NodeLimitParts {
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly report: DisruptionReport
  readonly events: EventRecorder
}

const reason = 'Drifted'

export class Drift implements DisruptionMethod {
  readonly reason = reason
  readonly type = ''
  readonly disruptionClass = 'eventual'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  among(all: readonly StateNode[]): readonly StateNode[] {
    return driftedAmong(all)
  }

  concerns(stateNode: StateNode): boolean {
    return isDrifted(stateNode)
  }

  accepts(candidate: Candidate): boolean {
    const { pool } = candidate
    if (pool.spec.replicas !== undefined || !isDrifted(candidate)) return false
    return !isRolloutPaused(this.#deps, candidate)
  }

  async pass(pass: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { report } = this.#deps
    const remaining = pass.budgets()
    const sets: ReplacedSets = {
      reason,
      allowed: pass.candidates
        .filter(({ pool }) => (remaining.get(pool.metadata.name) ?? 0) > 0)
        .map((candidate) => [candidate]),
      inOrder: emptyFirst,
      reportHeld: (candidate: Candidate, text: string) => {
        report.blocked(candidate, text)
      },
    }
    return await replaceFirst(this.#deps, sets, pass, signal)
  }
}

/** Empty nodes first, then those that drifted first. */
function emptyFirst([a]: readonly Candidate[], [b]: readonly Candidate[]): number {
  if (a === undefined || b === undefined) return 0
  const since = ({ claim }: Candidate) => transitionMs(claim, 'Drifted') ?? 0
  const isBusy = ({ pods }: Candidate) => (pods.length === 0 ? 0 : 1)
  return isBusy(a) - isBusy(b) || since(a) - since(b) || (a.name < b.name ? -1 : 1)
}

interface DriftTogetherParts extends NodeLimitParts {
  readonly state: NodeLimitParts['state'] & Pick<ClusterState, 'podGroups' | 'stateNodes'>
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly report: DisruptionReport
  readonly events: EventRecorder
  readonly units: WholeUnits
}

export class DriftTogether implements DisruptionMethod {
  readonly reason = reason
  readonly type = ''
  readonly disruptionClass = 'eventual'
  readonly groups = 'together'
  readonly #deps: DriftTogetherParts
  /** Units with a drifted node, as of the last {@link isQuiet}. */
  #drifted: ReadonlySet<GroupUnit> = new Set()

  constructor(deps: DriftTogetherParts) {
    this.#deps = deps
  }

  isQuiet(): boolean {
    const { state } = this.#deps
    const units = groupUnits(state)
    this.#drifted = new Set(
      units.size === 0
        ? []
        : driftedAmong(state.stateNodes()).flatMap(({ node }) => units.get(node?.metadata.name ?? '') ?? []),
    )
    return this.#drifted.size === 0
  }

  concerns({ node }: StateNode): boolean {
    const unit = groupUnits(this.#deps.state).get(node?.metadata.name ?? '')
    return unit !== undefined && this.#drifted.has(unit)
  }

  accepts(candidate: Candidate): boolean {
    const { pool } = candidate
    if (pool.spec.replicas !== undefined) return false
    return !isDrifted(candidate) || !isRolloutPaused(this.#deps, candidate)
  }

  whole(accepted: readonly Candidate[], catalogue: Catalogue): readonly Candidate[] {
    return this.#deps.units.complete(accepted, catalogue, this.disruptionClass)
  }

  async pass(pass: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { state, units } = this.#deps
    const remaining = pass.budgets()
    const sets: ReplacedSets = {
      reason,
      allowed: unitsOf(state, pass.candidates)
        .map(({ members }) => members)
        .filter((members) => this.#isWithin(members, remaining)),
      inOrder: longestFirst,
      reportHeld: (candidate: Candidate, text: string) => {
        units.report(candidate, text)
      },
    }
    return await replaceFirst(this.#deps, sets, pass, signal)
  }

  /** Whether budgets allow all of the nodes; if not, each of them gets an event. */
  #isWithin(members: readonly Candidate[], remaining: ReadonlyMap<string, number>): boolean {
    const refusal = overdrawnBudget(
      members.map(({ pool }) => pool.metadata.name),
      remaining,
    )
    if (refusal === undefined) return true
    const text = refusalText(refusal, () => undefined)
    for (const candidate of members) this.#deps.units.report(candidate, text)
    return false
  }
}

/** The set first whose first node drifted first. */
function longestFirst(a: readonly Candidate[], b: readonly Candidate[]): number {
  const since = (members: readonly Candidate[]) =>
    Math.min(...members.filter(isDrifted).map(({ claim }) => transitionMs(claim, 'Drifted') ?? 0))
  return since(a) - since(b) || ((a[0]?.name ?? '') < (b[0]?.name ?? '') ? -1 : 1)
}

export function isDrifted({ claim }: Pick<StateNode, 'claim'>): boolean {
  return claim !== undefined && isConditionTrue(claim, 'Drifted')
}

const hasDrifted = perObject((stateNode: StateNode) => isDrifted(stateNode))

/** Drifted instances; memoized by the list, which is the same as long as no instance has changed. */
export const driftedAmong = perObject((stateNodes: readonly StateNode[]) => stateNodes.filter(hasDrifted))

interface RolloutPauseParts {
  readonly state: Pick<ClusterState, 'rollouts'>
  readonly events: EventRecorder
}

const dedupeTtlMs = 5 * 60_000

/**
 * Whether drifted nodes of the candidate's NodePool are not replaced for now, because a replacement was drifted itself;
 * records events on the NodePool and the node.
 */
export function isRolloutPaused({ events, state }: RolloutPauseParts, candidate: Candidate): boolean {
  const { pool } = candidate
  const { name, uid = name } = pool.metadata
  const leftMs = state.rollouts.leftMs(name)
  if (leftMs === 0) return false
  const because = `drifted nodes of NodePool ${name} are not replaced for now, because a replacement was drifted itself`
  reportBlocked(events, candidate, because)
  events.record({
    object: pool,
    type: 'Warning',
    reason: 'RolloutPaused',
    message: `The replacement of a drifted node was drifted itself; the next one is replaced in ${Math.ceil(leftMs / 60_000)} min, or once the NodePool or its node class changes`,
    dedupe: [uid],
    dedupeTtlMs,
  })
  return true
}
