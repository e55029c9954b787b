import type { Logger, LogFields } from '@tenon/runtime'
import type { ClaimJournal, CreatedClaim } from '../../journal/claim-journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly metrics: Pick<Metrics, 'nodeClaimsCreated'>
  readonly logger: Logger
  readonly claimJournal: ClaimJournal
}

/** Which claim was created, and why. */
interface Creation extends CreatedClaim {
  readonly minValuesRelaxed: boolean
  /** What the log says of it beside. */
  readonly details?: LogFields
}

/** Counts claims that were created, notes them in the journal, and tells of them. */
export class ClaimCreations {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  note({ minValuesRelaxed, details, ...created }: Creation): void {
    const { claimJournal, logger, metrics } = this.#deps
    const { name, nodePool, reason } = created
    claimJournal.created(created)
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
