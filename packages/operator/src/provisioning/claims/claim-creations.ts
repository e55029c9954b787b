import type { Logger, LogFields } from '@tenon/runtime'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly metrics: Pick<Metrics, 'nodeClaimsCreated'>
  readonly logger: Logger
}

/** Which claim was created, and why. */
interface Creation {
  readonly name: string
  readonly nodePool: string
  /** As in metric `karpenter_nodeclaims_created_total`. */
  readonly reason: string
  readonly minValuesRelaxed: boolean
  /** What the log says of it beside. */
  readonly details?: LogFields
}

/** Counts claims that were created, and tells of them. */
export class ClaimCreations {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  note({ name, nodePool, reason, minValuesRelaxed, details }: Creation): void {
    const { logger, metrics } = this.#deps
    metrics.nodeClaimsCreated.inc({
      reason,
      nodepool: nodePool,
      min_values_relaxed: String(minValuesRelaxed),
    })
    logger.info('created nodeclaim', {
      NodePool: { name: nodePool },
      NodeClaim: { name },
      ...details,
    })
  }
}
