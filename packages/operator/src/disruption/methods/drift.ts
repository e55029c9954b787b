/** `disruption`, method Drift: replaces drifted nodes, one after the other (disruption.md 8). */
import type { RemovalResult } from '@tenon/engine'
import { type StateNode, transitionMs } from '../../cluster/nodes/state-node.ts'
import type { Candidate } from '../candidates.ts'
import { driftedAmong, isDrifted } from './drifted.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { heldBackText, type RolloutPause } from './rollout-pause.ts'
import type { DisruptionRemarks } from '../remarks.ts'
import { destinationsOf, type RemovalGround, type RemovalSimulation } from '../simulation.ts'

/** What this file works with. */
interface Dependencies {
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

  async pass({ budgets, candidates, mayNotLaunch, begin }: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { remarks, replacements, simulation } = this.#deps
    const remaining = budgets()
    const allowed = candidates.filter(({ pool }) => (remaining.get(pool.metadata.name) ?? 0) > 0)
    if (allowed.length === 0) return 'nothing'
    const ground = await simulation.ground(allowed, false, signal)
    if (ground === undefined) {
      remarks.noPools(reason)
      return 'again'
    }
    for (const candidate of inOrder([...ground.candidates.values()])) {
      const removal = await this.#without(ground, candidate, signal)
      if (removal === 'failed') continue
      if (removal === undefined) return 'nothing'
      if (removal.stranded.length > 0) {
        remarks.stranded(candidate, removal.stranded)
        continue
      }
      // Nodes for other pods are launched by the provisioner; this node need not wait for them.
      const held = removal.replacements.find(({ nodePool }) => mayNotLaunch(nodePool))
      if (held !== undefined) {
        remarks.blocked(candidate, heldBackText(held.nodePool))
        continue
      }
      const overtaken = await begin({
        reason,
        type: '',
        candidates: [candidate],
        replacements: removal.replacements.map((claim) => replacements.of(claim, reason)),
        destinations: destinationsOf(ground, removal.placements),
      })
      return overtaken === undefined ? 'begun' : 'again'
    }
    return 'nothing'
  }

  /** What becomes of the pods without the node; `failed` costs only this node its turn. */
  async #without(
    ground: RemovalGround,
    candidate: Candidate,
    signal: AbortSignal,
  ): Promise<RemovalResult | 'failed' | undefined> {
    try {
      return await this.#deps.simulation.without(ground, [candidate], signal)
    } catch (error) {
      if (signal.aborted) throw error
      const text = `simulating the placement of its pods failed: ${error instanceof Error ? error.message : String(error)}`
      this.#deps.remarks.stays(candidate, text)
      return 'failed'
    }
  }
}

/** Nodes without pods to move first; among equals the one that has drifted for longest. */
function inOrder(candidates: readonly Candidate[]): readonly Candidate[] {
  const since = ({ claim }: Candidate) => transitionMs(claim, 'Drifted') ?? 0
  const isBusy = ({ pods }: Candidate) => (pods.length === 0 ? 0 : 1)
  return candidates.toSorted(
    (a, b) => isBusy(a) - isBusy(b) || since(a) - since(b) || (a.name < b.name ? -1 : 1),
  )
}
