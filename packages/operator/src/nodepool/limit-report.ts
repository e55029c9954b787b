import type { NodePool } from '@tenon/api'
import type { Logger } from '@tenon/runtime'
import type { Kubernetes } from '../kubernetes.ts'
import type { ExceededQuota } from '../state/nodepools/limit-reservations.ts'
import { policyOf, type Settings } from '../settings.ts'

interface Dependencies {
  readonly kubernetes: Pick<Kubernetes<'nodePools'>, 'caches' | 'events'>
  readonly settings: Settings
  readonly logger: Logger
}

export const nodeLimitRemedy = 'raise limits.nodes by one or more'
const dedupeTtlMs = 5 * 60_000

/** Reports NodePools whose limits do not allow a node that is needed. */
export class LimitReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  reached(pool: NodePool, consequence: string): void {
    const { kubernetes, settings } = this.#deps
    if (!policyOf(settings).reportsLimits) return
    kubernetes.events.record({
      object: pool,
      type: 'Warning',
      reason: 'LimitReached',
      message: `NodePool ${pool.metadata.name} has reached its limits and ${consequence}; raise spec.limits`,
      dedupe: [pool.metadata.uid ?? ''],
      dedupeTtlMs,
    })
  }

  /** A quota has too little left for a node of the NodePool. */
  quotaReached(pool: NodePool, { quota, resource }: ExceededQuota, consequence: string): void {
    const { kubernetes } = this.#deps
    kubernetes.events.record({
      object: pool,
      type: 'Warning',
      reason: 'LimitReached',
      message: `CapacityQuota ${quota} has too little ${resource} left, and NodePool ${pool.metadata.name} ${consequence}; raise spec.limits.resources of the quota`,
      dedupe: [pool.metadata.uid ?? '', quota],
      dedupeTtlMs,
    })
  }

  reachedBy(name: string, consequence: string): void {
    const pool = this.#deps.kubernetes.caches.nodePools.get({ name })
    if (pool !== undefined) this.reached(pool, consequence)
  }

  /** Of a static NodePool. */
  ofNodes(
    pool: NodePool,
    figures: { readonly nodes: number; readonly replicas: number; readonly limit: number },
  ): void {
    const { name } = pool.metadata
    this.#deps.logger.info('nodepool has reached its limit for nodes', { NodePool: { name }, ...figures })
    this.reached(pool, `has ${figures.nodes} of ${figures.replicas} nodes`)
  }
}
