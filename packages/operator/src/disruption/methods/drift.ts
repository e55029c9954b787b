/** `disruption`, method Drift: replaces drifted nodes, one after the other (disruption.md 8). */
import { isConditionTrue } from '@tenon/api'
import type { RemovalResult } from '@tenon/engine'
import type { OperatorContext } from '../../context.ts'
import { type StateNode, transitionMs } from '../../cluster/nodes/state-node.ts'
import { remainingDisruptions } from '../budget.ts'
import { type Candidate, tellBlocked } from '../candidates.ts'
import { keepStranded } from '../explain.ts'
import type { DisruptionMethod, Pass } from './method.ts'
import { plannedReplacement } from '../commands/planned-replacement.ts'
import { heldBackText, isRolloutPaused } from './rollout-pause.ts'
import { claimNames, strandedText } from '../remarks.ts'
import { destinationsOf, type RemovalGround, removalGround, withoutNodes } from '../simulation.ts'

const reason = 'Drifted'

export class Drift implements DisruptionMethod {
  readonly reason = reason
  readonly type = ''
  readonly disruptionClass = 'eventual'
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  concerns({ claim }: StateNode): boolean {
    return claim !== undefined && isConditionTrue(claim, 'Drifted')
  }

  accepts(candidate: Candidate): boolean {
    const { pool, claim } = candidate
    if (pool.spec.replicas !== undefined || !isConditionTrue(claim, 'Drifted')) return false
    return !isRolloutPaused(this.#context, candidate)
  }

  async pass({ candidates, mayNotLaunch, begin }: Pass, signal: AbortSignal): Promise<boolean> {
    const context = this.#context
    const remaining = remainingDisruptions(context, reason)
    const allowed = candidates.filter(({ pool }) => (remaining.get(pool.metadata.name) ?? 0) > 0)
    if (allowed.length === 0) return false
    const ground = await removalGround(context, allowed, false, signal)
    for (const candidate of inOrder([...ground.candidates.values()])) {
      const removal = await this.#without(ground, candidate, signal)
      if (removal === 'failed') continue
      if (removal === undefined) return false
      if (removal.stranded.length > 0) {
        const text = strandedText(removal.stranded, claimNames(context))
        tellBlocked(context, candidate, text)
        keepStranded(context, candidate.name, text)
        continue
      }
      // Nodes for other pods are launched by the provisioner; this node need not wait for them.
      const moving = new Set(candidate.movable.map(({ metadata }) => metadata.uid))
      const claims = removal.claims.filter(({ pods }) =>
        pods.some(({ metadata }) => moving.has(metadata.uid)),
      )
      const held = claims.find(({ nodePool }) => mayNotLaunch(nodePool))
      if (held !== undefined) {
        tellBlocked(context, candidate, heldBackText(held.nodePool))
        continue
      }
      await begin({
        reason,
        type: '',
        candidates: [candidate],
        replacements: claims.map((claim) => plannedReplacement(context, claim, reason)),
        destinations: destinationsOf(ground, removal.placements),
      })
      return true
    }
    return false
  }

  /** What becomes of the pods without the node; `failed` costs only this node its turn. */
  async #without(
    ground: RemovalGround,
    candidate: Candidate,
    signal: AbortSignal,
  ): Promise<RemovalResult | 'failed' | undefined> {
    try {
      return await withoutNodes(this.#context, ground, [candidate], signal)
    } catch (error) {
      if (signal.aborted) throw error
      const text = `working out where its pods would go fails: ${error instanceof Error ? error.message : String(error)}`
      tellBlocked(this.#context, candidate, text)
      keepStranded(this.#context, candidate.name, text)
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
