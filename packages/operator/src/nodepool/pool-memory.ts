/** Writes on NodePools what their nodes have taught. */
import { ConditionSet, conditionOf, karpenterKinds, type NewCondition, type NodePool } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { UselessNode } from '../state/nodes/node-evidence.ts'
import { uselessText } from '../state/nodes/node-evidence.ts'
import { nodePoolConditions } from '../state/conditions.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly clock: Pick<Clock, 'now'>
}

const conditionType = 'LaunchesServePods'

export class PoolMemory {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Says in a condition which nodes were launched in vain. @throws KubeError when the pool has changed, or is gone. */
  async tell(pool: NodePool, useless: readonly UselessNode[]): Promise<void> {
    const { client, clock } = this.#deps
    const stored = conditionOf(pool, conditionType)
    if (useless.length === 0 && stored === undefined) return
    const wanted: NewCondition =
      useless.length === 0
        ? { type: conditionType, status: 'True' }
        : {
            type: conditionType,
            status: 'False',
            reason: 'NodeRefused',
            message: useless
              .slice(0, 3)
              .map((each) => uselessText(each))
              .join('; ')
              .slice(0, 2000),
          }
    const isSame = wanted.status === stored?.status && (wanted.message ?? '') === (stored.message ?? '')
    if (isSame) return
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(wanted, clock.now())
    await client.patch(
      karpenterKinds.nodePool,
      { name: pool.metadata.name },
      { status: { conditions } },
      { subresource: 'status', resourceVersion: pool.metadata.resourceVersion ?? '' },
    )
  }

  /** Keeps a list in an annotation; a pool that is gone needs none. */
  async annotate(pool: NodePool, key: string, list: readonly object[]): Promise<void> {
    const value = list.length === 0 ? null : JSON.stringify(list)
    try {
      await this.#deps.client.patch(
        karpenterKinds.nodePool,
        { name: pool.metadata.name },
        { metadata: { annotations: { [key]: value } } },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}
