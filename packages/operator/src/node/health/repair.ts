/** Replaces a node that is unhealthy: its claim goes, and its pods get no grace (lifecycle.md 11). */
import { annotations, karpenterKinds, labels, type Node, type NodeClaim } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import { snakeCase } from './unhealthy.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly deleter: ClaimDeleter
  readonly metrics: Pick<Metrics, 'nodeClaimsUnhealthyDisrupted'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

export class NodeRepair {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param conditionType the condition that makes the node unhealthy. */
  async run(node: Node, claim: NodeClaim, conditionType: string): Promise<void> {
    const { deleter, logger, metrics } = this.#deps
    try {
      await this.#endGracePeriod(claim)
    } catch (error) {
      if (isKubeError(error, 'notFound')) return
      throw error
    }
    if (claim.metadata.deletionTimestamp !== undefined) return
    const tags = node.metadata.labels ?? {}
    if (!(await deleter.delete(claim, 'unhealthy', tags))) return
    logger.info('deleting unhealthy node', {
      Node: { name: node.metadata.name },
      NodeClaim: { name: claim.metadata.name },
      reason: conditionType,
    })
    metrics.nodeClaimsUnhealthyDisrupted.inc({
      condition: snakeCase(conditionType),
      nodepool: tags[labels.nodePool] ?? '',
      capacity_type: tags[labels.capacityType] ?? '',
      image_id: claim.status?.imageID ?? '',
    })
  }

  /** A node that is not well cannot be drained politely: its pods get no grace beyond this moment. */
  async #endGracePeriod({ metadata }: NodeClaim): Promise<void> {
    const { client, clock, logger } = this.#deps
    const key = annotations.terminationTimestamp
    const now = clock.now()
    if (Date.parse(metadata.annotations?.[key] ?? '') <= now) return
    const deadline = rfc3339(now)
    await client.patch(
      karpenterKinds.nodeClaim,
      { name: metadata.name },
      { metadata: { annotations: { [key]: deadline } } },
    )
    logger.info('annotated nodeclaim', { NodeClaim: { name: metadata.name }, [key]: deadline })
  }
}
