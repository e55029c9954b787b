/** Tells how the termination of Nodes goes on: logs and metrics. */
import { labels, type Node, type NodeClaim } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly metrics: Pick<Metrics, 'nodesDrained' | 'nodesTerminated' | 'nodesTermination' | 'nodesLifetime'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

export class TerminationReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  tainted({ metadata }: Node): void {
    this.#deps.logger.info('tainted node', { Node: { name: metadata.name } })
  }

  drained({ metadata }: NodeClaim): void {
    this.#deps.metrics.nodesDrained.inc({ nodepool: metadata.labels?.[labels.nodePool] ?? '' })
  }

  /** The Node has lost its finalizer. */
  finished({ metadata, spec }: Node): void {
    const { clock, logger, metrics } = this.#deps
    const tags = metadata.labels ?? {}
    const nodepool = tags[labels.nodePool] ?? ''
    const secondsSince = (time: string | undefined) =>
      Math.max(0, clock.now() - Date.parse(time ?? '')) / 1000
    metrics.nodesTerminated.inc({ nodepool, zone: tags[labels.zone] ?? '' })
    metrics.nodesTermination.observe({ nodepool }, secondsSince(metadata.deletionTimestamp))
    metrics.nodesLifetime.observe({ nodepool }, secondsSince(metadata.creationTimestamp))
    logger.info('deleted node', { Node: { name: metadata.name }, 'provider-id': spec?.providerID })
  }
}
