/** Answers what NodePools may buy, and how many of their nodes may be disrupted. */
import type { DisruptionReason, InstanceType, NodePool } from '@tenon/api'
import type { BudgetWindow } from '@tenon/engine'
import { type CloudProvider, isProviderError, type NodeDefaults } from '@tenon/provider'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { DisruptionBudgets } from '../disruption/budget.ts'

/** What a NodePool may buy now, as decisions see it. */
export interface PoolCatalogue {
  readonly nodePool: NodePool
  /** Undefined when the provider cannot tell now. */
  readonly instanceTypes: readonly InstanceType[] | undefined
  /** Why it cannot. */
  readonly problem?: string
  readonly defaults?: NodeDefaults
  /** Of kubelets of new nodes; absent if the provider does not know it. */
  readonly kubeletVersion?: string
}

/** What the budgets of a NodePool leave for one reason. */
export interface BudgetAnswer {
  readonly allowed: number
  /** As if nothing were paused. */
  readonly byBudgets: number
  readonly disrupting: number
  /** Nodes of the NodePool that count. */
  readonly total: number
  /** From now on. */
  readonly windows: Iterable<BudgetWindow>
}

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly provider: Pick<CloudProvider, 'getInstanceTypes' | 'kubeletVersion' | 'nodeDefaults'>
  readonly budgets: Pick<DisruptionBudgets, 'stateOf' | 'windows'>
}

export class PoolQuestions {
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
        const kubeletVersion = provider.kubeletVersion?.(nodePool)
        const pool = {
          nodePool,
          ...(defaults && { defaults }),
          ...(kubeletVersion !== undefined && { kubeletVersion }),
        }
        try {
          return { ...pool, instanceTypes: await provider.getInstanceTypes(nodePool, signal) }
        } catch (error) {
          if (!isProviderError(error)) throw error
          return { ...pool, instanceTypes: undefined, problem: error.message }
        }
      }),
    )
  }

  /** How many nodes of a NodePool may be disrupted for a reason, and how many are. */
  budget(pool: NodePool, reason: DisruptionReason): BudgetAnswer {
    const { budgets } = this.#deps
    return { ...budgets.stateOf(pool, reason), windows: budgets.windows(pool, reason) }
  }
}
