/** `disruption`, method Drift: replaces drifted nodes, one after the other (disruption.md 8). */
import { type StateNode, transitionMs } from '../../state/nodes/state-node.ts'
import { type Candidate, reportBlocked } from '../candidates.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { type NodeLimitParts, reportFull } from '../node-limits.ts'
import type { DisruptionReport } from '../report.ts'
import { destinationsOf, type PreparedRemoval, type RemovalSimulation } from '../simulation.ts'
import type { NewClaim, RemovalResult } from '@tenon/engine'
import { overdrawnBudget } from '@tenon/engine/consolidation'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type GroupUnit, groupUnits } from '../group-units.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import { refusalText } from '../refusals.ts'
import { unitsOf, type WholeUnits } from '../whole-units.ts'
import { mayGoFirst, uncounted } from '../without-surge.ts'
import type { Catalogue } from '../catalogue.ts'
import { isConditionTrue } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'

interface Dependencies extends NodeLimitParts {
  readonly state: DriftState
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly report: DisruptionReport
  readonly events: EventRecorder
}

type DriftState = NodeLimitParts['state'] & Pick<ClusterState, 'poolWishes'>

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
    const sets = {
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
  readonly state: DriftState & Pick<ClusterState, 'podGroups' | 'stateNodes'>
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
    const sets = {
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

interface ReplaceFirstParts extends NodeLimitParts {
  readonly state: DriftState
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly report: DisruptionReport
}

/** Nodes that are replaced in one command. */
type DriftedSet = readonly Candidate[]

interface DriftedSets {
  /** The sets that budgets allow. */
  readonly allowed: readonly DriftedSet[]
  /** The order in which they are tried. */
  readonly inOrder: (a: DriftedSet, b: DriftedSet) => number
  /** Records on a node that no replacement may be launched now. */
  readonly reportHeld: (candidate: Candidate, text: string) => void
}

/** Replaces the first set whose pods all find a place. */
async function replaceFirst(
  deps: ReplaceFirstParts,
  { allowed, inOrder, reportHeld }: DriftedSets,
  { mayNotLaunch, begin }: Pick<Pass, 'begin' | 'mayNotLaunch'>,
  signal: AbortSignal,
): Promise<PassOutcome> {
  const { report, replacements, simulation } = deps
  if (allowed.length === 0) return 'nothing'
  const mayLaunch = ({ nodePool }: NewClaim) => !mayNotLaunch(nodePool)
  const prepared = await simulation.prepare(allowed.flat(), false, signal)
  if (prepared === undefined) {
    report.noPools(reason)
    return 'again'
  }
  const judged = allowed.flatMap((set) => {
    const nodes = set.flatMap(({ name }) => prepared.candidates.get(name) ?? [])
    return nodes.length === set.length ? [nodes] : []
  })
  for (const set of judged.toSorted(inOrder)) {
    const removal = await without(deps, prepared, set, signal)
    if (removal === 'failed') continue
    if (removal === undefined) return 'nothing'
    const command = { reason, type: '', candidates: set, isWhole: set.length > 1 } as const
    if (removal.stranded.length > 0) {
      if (mayGoFirst(deps, set)) {
        const after = await without(deps, uncounted(prepared, set), set, signal)
        // The provisioner launches what follows it, once quotas have room.
        if (after !== 'failed' && after?.stranded.length === 0 && after.replacements.every(mayLaunch))
          return outcomeOf(await begin({ ...command, replacements: [], destinations: [] }))
      }
      for (const candidate of set) report.stranded(candidate, removal.stranded)
      continue
    }
    // Nodes for other pods are the provisioner's; this command does not wait for them.
    const held = removal.replacements.find((claim) => !mayLaunch(claim))
    if (held !== undefined) {
      const text = reportFull(deps, held.nodePool) ?? heldBackText(held.nodePool)
      for (const candidate of set) reportHeld(candidate, text)
      continue
    }
    const overtaken = await begin({
      ...command,
      replacements: removal.replacements.map((claim) => replacements.of(claim, reason)),
      destinations: destinationsOf(prepared, removal.placements),
    })
    return outcomeOf(overtaken)
  }
  return 'nothing'
}

function outcomeOf(overtaken: Overtaken | undefined): PassOutcome {
  return overtaken === undefined ? 'begun' : 'again'
}

/** Simulates the removal of the nodes; after a failure the next set is tried. */
async function without(
  { report, simulation }: ReplaceFirstParts,
  prepared: PreparedRemoval,
  set: DriftedSet,
  signal: AbortSignal,
): Promise<RemovalResult | 'failed' | undefined> {
  try {
    return await simulation.without(prepared, set, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const text = `simulating the placement of its pods failed: ${error instanceof Error ? error.message : String(error)}`
    for (const candidate of set) report.stays(candidate, text)
    return 'failed'
  }
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

export function heldBackText(pool: string): string {
  return `no NodeClaim of NodePool ${pool} is created as a replacement for now, because the last one did not become a node`
}
