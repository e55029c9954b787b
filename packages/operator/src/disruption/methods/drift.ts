/** `disruption`, method Drift: replaces drifted nodes, one after the other (disruption.md 8). */
import type { Clock, Logger, Random, Turns } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import type { EventRecorder, KubeClient } from '@tenon/kube'
import { isConditionTrue } from '@tenon/api'
import type { RemovalResult } from '@tenon/engine'
import { type StateNode, transitionMs } from '../../cluster/nodes/state-node.ts'
import { remainingDisruptions } from '../budget.ts'
import { type Candidate, tellBlocked } from '../candidates.ts'
import { keepStranded } from '../explain.ts'
import type { DisruptionMethod, Pass } from './method.ts'
import { plannedReplacement } from '../commands/planned-replacement.ts'
import { heldBackText, isRolloutPaused } from './rollout-pause.ts'
import { claimNames, strandedText } from '../remarks.ts'
import { destinationsOf, type RemovalGround, removalGround, withoutNodes } from '../simulation.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { SchedulingDecider } from '../../decider/decider.ts'
import type { PlacementGate } from '../../placement/gate.ts'
import type { DisruptionAnswers } from '../answers.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  readonly answers: DisruptionAnswers
  readonly metrics: Metrics
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
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

  concerns({ claim }: StateNode): boolean {
    return claim !== undefined && isConditionTrue(claim, 'Drifted')
  }

  accepts(candidate: Candidate): boolean {
    const { pool, claim } = candidate
    if (pool.spec.replicas !== undefined || !isConditionTrue(claim, 'Drifted')) return false
    return !isRolloutPaused(this.#deps, candidate)
  }

  async pass({ candidates, mayNotLaunch, begin }: Pass, signal: AbortSignal): Promise<boolean> {
    const deps = this.#deps
    const remaining = remainingDisruptions(deps, reason)
    const allowed = candidates.filter(({ pool }) => (remaining.get(pool.metadata.name) ?? 0) > 0)
    if (allowed.length === 0) return false
    const ground = await removalGround(deps, allowed, false, signal)
    for (const candidate of inOrder([...ground.candidates.values()])) {
      const removal = await this.#without(ground, candidate, signal)
      if (removal === 'failed') continue
      if (removal === undefined) return false
      if (removal.stranded.length > 0) {
        const text = strandedText(removal.stranded, claimNames(deps))
        tellBlocked(deps, candidate, text)
        keepStranded(deps, candidate.name, text)
        continue
      }
      // Nodes for other pods are launched by the provisioner; this node need not wait for them.
      const moving = new Set(candidate.movable.map(({ metadata }) => metadata.uid))
      const claims = removal.claims.filter(({ pods }) =>
        pods.some(({ metadata }) => moving.has(metadata.uid)),
      )
      const held = claims.find(({ nodePool }) => mayNotLaunch(nodePool))
      if (held !== undefined) {
        tellBlocked(deps, candidate, heldBackText(held.nodePool))
        continue
      }
      await begin({
        reason,
        type: '',
        candidates: [candidate],
        replacements: claims.map((claim) => plannedReplacement(deps, claim, reason)),
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
      return await withoutNodes(this.#deps, ground, [candidate], signal)
    } catch (error) {
      if (signal.aborted) throw error
      const text = `working out where its pods would go fails: ${error instanceof Error ? error.message : String(error)}`
      tellBlocked(this.#deps, candidate, text)
      keepStranded(this.#deps, candidate.name, text)
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
