/** Answers what would be decided now, and carries out nothing of it. */
import type { NodePool, Pod } from '@tenon/api'
import type { PoolInput, SchedulingResult } from '@tenon/engine'
import type { SchedulingDecider } from '../decide/decider.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { UnreadyPool } from '../provisioning/input/eligible-pools.ts'
import type { GatheredInput, SchedulingInputs } from '../provisioning/input/scheduling-input.ts'
import { withRefused } from '../provisioning/refused-claims.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { NodeAnswer, NodeQuestions } from './node-questions.ts'
import type { PoolCatalogue, PoolQuestions } from './pool-questions.ts'

/** What would be decided about the pods that wait. */
export interface PendingDecision {
  readonly input: GatheredInput
  readonly result: SchedulingResult
}

interface Dependencies {
  readonly pools: PoolQuestions
  readonly inputs: SchedulingInputs
  readonly decider: Pick<SchedulingDecider, 'decide'>
  readonly placementGate: Pick<PlacementGate, 'settled'>
  readonly state: Pick<ClusterState, 'claimRefusals'>
  /** Loads what answers about nodes. */
  readonly nodes: () => Promise<NodeQuestions>
}

export class Questions {
  readonly #deps: Dependencies
  readonly pools: PoolQuestions
  #nodes: Promise<NodeQuestions> | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.pools = deps.pools
  }

  /** What each NodePool of this provider may buy. */
  async catalogue(signal: AbortSignal): Promise<readonly PoolCatalogue[]> {
    return await this.pools.catalogue(signal)
  }

  /**
   * Decides about the pods that wait as the next pass would.
   * @param deadlineMs a decision that takes longer ends with what it has.
   */
  async pending(deadlineMs: number, signal: AbortSignal): Promise<PendingDecision> {
    const { decider, inputs, placementGate, state } = this.#deps
    await placementGate.settled()
    const gathered = await inputs.forPending(signal)
    const refused = state.claimRefusals.among(gathered.pods)
    const input =
      refused.size === 0
        ? gathered
        : withRefused(
            gathered,
            gathered.pods.filter((pod) => !refused.has(pod)),
            refused,
          )
    return { input, result: await decider.decide(input, { deadlineMs, signal }) }
  }

  /** NodePools that launch nothing now. */
  unreadyPools(): readonly UnreadyPool[] {
    return this.#deps.inputs.unreadyPools()
  }

  /** A pod that can be read, as decisions read it. */
  readPod(pod: Pod): Pod {
    return this.#deps.inputs.readPod(pod)
  }

  /** A NodePool as decisions read it; undefined while nothing is known of its types. */
  async readPool(pool: NodePool, signal: AbortSignal): Promise<PoolInput | undefined> {
    return await this.#deps.inputs.readPool(pool, signal)
  }

  /**
   * Why one node is still there, and what a search for it would find now.
   * @param name of its NodeClaim, or else of its Node.
   * @returns undefined when no such node has a NodeClaim.
   */
  async node(name: string, signal: AbortSignal): Promise<NodeAnswer | undefined> {
    this.#nodes ??= this.#deps.nodes()
    return await (await this.#nodes).answer(name, signal)
  }
}
