/** `disruption`, method Drift: replaces drifted nodes, one after the other (disruption.md 8). */
import { type StateNode, transitionMs } from '../../state/nodes/state-node.ts'
import type { Candidate } from '../candidates.ts'
import { driftedAmong, isDrifted } from './drifted.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import { replaceFirst } from './drifted-sets.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import type { RolloutPause } from './rollout-pause.ts'
import type { NodeLimitParts } from '../node-limits.ts'
import type { DisruptionRemarks } from '../remarks.ts'
import type { RemovalSimulation } from '../simulation.ts'

/** What this file works with. */
interface Dependencies extends NodeLimitParts {
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly remarks: DisruptionRemarks
  readonly rolloutPause: RolloutPause
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
    return !this.#deps.rolloutPause.holds(candidate)
  }

  async pass(pass: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { remarks } = this.#deps
    const remaining = pass.budgets()
    const sets = {
      allowed: pass.candidates
        .filter(({ pool }) => (remaining.get(pool.metadata.name) ?? 0) > 0)
        .map((candidate) => [candidate]),
      inOrder,
      tellHeld: (candidate: Candidate, text: string) => {
        remarks.blocked(candidate, text)
      },
    }
    return await replaceFirst(this.#deps, sets, pass, signal)
  }
}

/** Nodes without pods to move first; among equals the one that has drifted for longest. */
function inOrder([a]: readonly Candidate[], [b]: readonly Candidate[]): number {
  if (a === undefined || b === undefined) return 0
  const since = ({ claim }: Candidate) => transitionMs(claim, 'Drifted') ?? 0
  const isBusy = ({ pods }: Candidate) => (pods.length === 0 ? 0 : 1)
  return isBusy(a) - isBusy(b) || since(a) - since(b) || (a.name < b.name ? -1 : 1)
}
