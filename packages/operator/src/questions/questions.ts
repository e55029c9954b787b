/** Answers what would be decided now, and carries out nothing of it. */
import type { InstanceType, NodePool, Pod } from '@tenon/api'
import type { PoolInput, SchedulingResult } from '@tenon/engine'
import { type CloudProvider, isProviderError, type NodeDefaults } from '@tenon/provider'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { SchedulingDecider } from '../decider/decider.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { UnreadyPool } from '../provisioning/input/eligible-pools.ts'
import type { GatheredInput, SchedulingInputs } from '../provisioning/input/scheduling-input.ts'
import type { OnTrial } from '../node/evidence/judge.ts'

/** What a NodePool may buy now, as decisions see it. */
export interface PoolCatalogue {
  readonly nodePool: NodePool
  /** Undefined when the provider cannot tell now. */
  readonly instanceTypes: readonly InstanceType[] | undefined
  /** Why it cannot. */
  readonly problem?: string
  readonly defaults?: NodeDefaults
}

/** What would be decided about the pods that wait. */
export interface PendingDecision {
  readonly input: GatheredInput
  readonly result: SchedulingResult
}

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly provider: Pick<CloudProvider, 'getInstanceTypes' | 'nodeDefaults'>
  readonly inputs: SchedulingInputs
  readonly decider: Pick<SchedulingDecider, 'decide'>
  readonly placementGate: Pick<PlacementGate, 'settled'>
}

export class Questions {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** What each NodePool of this provider may buy. */
  async catalogue(signal: AbortSignal): Promise<readonly PoolCatalogue[]> {
    const { caches, provider, state } = this.#deps
    const pools = caches.nodePools.list().filter((pool) => state.isManaged(pool))
    return await Promise.all(
      pools.map(async (nodePool): Promise<PoolCatalogue> => {
        const defaults = provider.nodeDefaults?.(nodePool)
        const pool = { nodePool, ...(defaults && { defaults }) }
        try {
          return { ...pool, instanceTypes: await provider.getInstanceTypes(nodePool, signal) }
        } catch (error) {
          if (!isProviderError(error)) throw error
          return { ...pool, instanceTypes: undefined, problem: error.message }
        }
      }),
    )
  }

  /**
   * Decides about the pods that wait as the next pass would.
   * @param onTrial pods for which nodes are there that may yet take them.
   * @param deadlineMs a decision that takes longer ends with what it has.
   */
  async pending(onTrial: OnTrial, deadlineMs: number, signal: AbortSignal): Promise<PendingDecision> {
    const { decider, inputs, placementGate } = this.#deps
    await placementGate.settled()
    const input = await inputs.forPending(onTrial, signal)
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
}
