/** `disruption`, method DriftTogether: replaces nodes of which none goes alone, once one has drifted (gangs.md 7.5). */
import { overdrawnBudget } from '@tenon/engine'
import { type StateNode, transitionMs } from '../../state/nodes/state-node.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Candidate } from '../candidates.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { type GroupUnit, groupUnits } from '../group-units.ts'
import { refusalText } from '../refusals.ts'
import type { NodeLimitParts } from '../node-limits.ts'
import type { DisruptionRemarks } from '../remarks.ts'
import type { RemovalSimulation } from '../simulation.ts'
import { unitsOf, type WholeUnits } from '../whole-units.ts'
import type { Catalogue } from '../catalogue.ts'
import { driftedAmong, isDrifted } from './drifted.ts'
import { replaceFirst } from './drifted-sets.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import type { RolloutPause } from './rollout-pause.ts'

/** What this file works with. */
interface Dependencies extends NodeLimitParts {
  readonly state: Pick<ClusterState, 'podGroups' | 'poolClaims' | 'rollouts' | 'stateNodes'>
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
    return !isDrifted(candidate) || !this.#deps.rolloutPause.holds(candidate)
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
      tellHeld: (candidate: Candidate, text: string) => {
        units.tell(candidate, text)
      },
    }
    return await replaceFirst(this.#deps, sets, pass, signal)
  }

  /** Whether budgets allow all of the nodes; if not, it is told on each of them. */
  #isWithin(members: readonly Candidate[], remaining: ReadonlyMap<string, number>): boolean {
    const refusal = overdrawnBudget(
      members.map(({ pool }) => pool.metadata.name),
      remaining,
    )
    if (refusal === undefined) return true
    const text = refusalText(refusal, () => undefined)
    for (const candidate of members) this.#deps.units.tell(candidate, text)
    return false
  }
}

/** Those first of which a node has drifted for longest. */
function longestFirst(a: readonly Candidate[], b: readonly Candidate[]): number {
  const since = (members: readonly Candidate[]) =>
    Math.min(...members.filter(isDrifted).map(({ claim }) => transitionMs(claim, 'Drifted') ?? 0))
  return since(a) - since(b) || ((a[0]?.name ?? '') < (b[0]?.name ?? '') ? -1 : 1)
}
