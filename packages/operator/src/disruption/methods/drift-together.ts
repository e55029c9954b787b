/** `disruption`, method DriftTogether: replaces nodes of which none goes alone, once one has drifted (gangs.md 7.5). */
import { isConditionTrue } from '@tenon/api'
import type { RemovalResult } from '@tenon/engine'
import { type StateNode, transitionMs } from '../../cluster/nodes/state-node.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Candidate } from '../candidates.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { type GroupUnit, groupUnits } from '../group-units.ts'
import { refusalText } from '../refusals.ts'
import type { DisruptionRemarks } from '../remarks.ts'
import { destinationsOf, type RemovalGround, type RemovalSimulation } from '../simulation.ts'
import { unitsOf, type WholeUnits } from '../whole-units.ts'
import type { Catalogue } from '../catalogue.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import { heldBackText, type RolloutPause } from './rollout-pause.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'podGroups' | 'stateNodes'>
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly remarks: DisruptionRemarks
  readonly rolloutPause: RolloutPause
  readonly units: WholeUnits
}

const reason = 'Drifted'

export class DriftTogether implements DisruptionMethod {
  readonly reason = reason
  readonly type = ''
  readonly disruptionClass = 'eventual'
  readonly groups = 'together'
  readonly #deps: Dependencies
  /** Units with a node that has drifted, as of the last {@link isQuiet}. */
  #drifted: ReadonlySet<GroupUnit> = new Set()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  isQuiet(): boolean {
    const { state } = this.#deps
    const units = groupUnits(state)
    this.#drifted = new Set(
      units.size === 0
        ? []
        : state.stateNodes().flatMap(({ claim, node }) => {
            const unit = units.get(node?.metadata.name ?? '')
            return claim !== undefined && unit !== undefined && isConditionTrue(claim, 'Drifted')
              ? [unit]
              : []
          }),
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
    return !isDrifted(candidate) || !this.#deps.rolloutPause.holds(candidate)
  }

  whole(accepted: readonly Candidate[], catalogue: Catalogue): readonly Candidate[] {
    return this.#deps.units.complete(accepted, catalogue, this.disruptionClass)
  }

  async pass({ budgets, candidates, mayNotLaunch, begin }: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { remarks, replacements, simulation, state } = this.#deps
    const remaining = budgets()
    const allowed = unitsOf(state, candidates)
      .map(({ members }) => members)
      .filter((members) => this.#isWithin(members, remaining))
    if (allowed.length === 0) return 'nothing'
    const ground = await simulation.ground(allowed.flat(), false, signal)
    if (ground === undefined) {
      remarks.noPools(reason)
      return 'again'
    }
    for (const members of allowed.toSorted(longestFirst)) {
      if (!members.every(({ name }) => ground.candidates.has(name))) continue
      const removal = await this.#without(ground, members, signal)
      if (removal === 'failed') continue
      if (removal === undefined) return 'nothing'
      if (removal.stranded.length > 0) {
        for (const candidate of members) remarks.stranded(candidate, removal.stranded)
        continue
      }
      const held = removal.replacements.find(({ nodePool }) => mayNotLaunch(nodePool))
      if (held !== undefined) {
        this.#tell(members, heldBackText(held.nodePool))
        continue
      }
      const overtaken = await begin({
        reason,
        type: '',
        candidates: members,
        replacements: removal.replacements.map((claim) => replacements.of(claim, reason)),
        destinations: destinationsOf(ground, removal.placements),
      })
      return overtaken === undefined ? 'begun' : 'again'
    }
    return 'nothing'
  }

  /** Whether budgets allow all of the nodes; if not, it is told on each of them. */
  #isWithin(members: readonly Candidate[], remaining: ReadonlyMap<string, number>): boolean {
    for (const [nodePool, nodes] of Map.groupBy(members, ({ pool }) => pool.metadata.name)) {
      const allowed = remaining.get(nodePool) ?? 0
      if (nodes.length <= allowed) continue
      const refusal = { kind: 'budget', nodePool, nodes: nodes.length, allowed } as const
      this.#tell(
        members,
        refusalText(refusal, () => undefined),
      )
      return false
    }
    return true
  }

  #tell(members: readonly Candidate[], text: string): void {
    for (const candidate of members) this.#deps.units.tell(candidate, text)
  }

  /** What becomes of the pods without the nodes; `failed` costs only these nodes their turn. */
  async #without(
    ground: RemovalGround,
    members: readonly Candidate[],
    signal: AbortSignal,
  ): Promise<RemovalResult | 'failed' | undefined> {
    try {
      return await this.#deps.simulation.without(ground, members, signal)
    } catch (error) {
      if (signal.aborted) throw error
      const text = `simulating the placement of its pods failed: ${error instanceof Error ? error.message : String(error)}`
      for (const candidate of members) this.#deps.remarks.stays(candidate, text)
      return 'failed'
    }
  }
}

const isDrifted = ({ claim }: Candidate): boolean => isConditionTrue(claim, 'Drifted')

/** Those first of which a node has drifted for longest. */
function longestFirst(a: readonly Candidate[], b: readonly Candidate[]): number {
  const since = (members: readonly Candidate[]) =>
    Math.min(...members.filter(isDrifted).map(({ claim }) => transitionMs(claim, 'Drifted') ?? 0))
  return since(a) - since(b) || ((a[0]?.name ?? '') < (b[0]?.name ?? '') ? -1 : 1)
}
