/** `state.pricing` and its kin: keeps what each NodePool costs up to date (cluster-state.md 12). */
import type { Logger } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import { labels } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import { managedPool } from '../state/nodepools/managed-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools'>
  readonly state: Pick<ClusterState, 'poolCosts'>
  readonly provider: Pick<CloudProvider, 'getInstanceTypes' | 'nodeClasses'>
  readonly metrics: Pick<Metrics, 'nodePoolCostErrors'>
  readonly logger: Logger
}

const refreshMs = 60 * 60_000

/** Reads prices when something new is bought, and all of them every hour. */
export class PoolPricing implements ControllerSpec {
  readonly name = 'state.nodeclaim'
  readonly concurrency = { least: 10, most: 3000 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind !== 'deleted' && state.poolCosts.lacksPrice(object))
        enqueue(object.metadata.labels?.[labels.nodePool] ?? '')
    })
    enqueueChanged(caches.nodePools, enqueue)
  }

  /**
   * Looks for the prices of what the pool has bought.
   * @throws what listing the pool's types fails with, an evaluation of overlays that is still to come included.
   */
  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { logger, state } = this.#deps
    if (state.poolCosts.unlooked(name).length === 0) return done
    const types = await this.#typesOf(name, signal)
    for (const bought of types === undefined ? [] : state.poolCosts.price(name, types))
      logger.warn('price unknown: not included in costs, and not replaced to save money', {
        NodePool: { name },
        ...bought,
      })
    return done
  }

  /**
   * Takes today's prices for every pool that has instances.
   * @throws AggregateError naming the pools whose types could not be listed; the others are done.
   */
  async refresh(signal: AbortSignal): Promise<ReconcileResult> {
    const { caches, state } = this.#deps
    const failures: Error[] = []
    for (const { metadata } of caches.nodePools.list()) {
      if (!state.poolCosts.hasBought(metadata.name)) continue
      try {
        const types = await this.#typesOf(metadata.name, signal)
        if (types !== undefined) state.poolCosts.reprice(metadata.name, types)
      } catch (cause) {
        signal.throwIfAborted()
        const text = cause instanceof Error ? cause.message : String(cause)
        failures.push(new Error(`NodePool ${metadata.name}: ${text}`, { cause }))
      }
    }
    if (failures.length === 0) return { kind: 'after', delayMs: refreshMs }
    const texts = failures.map(({ message }) => message)
    throw new AggregateError(failures, `reading prices: ${texts.join('; ')}`)
  }

  async #typesOf(name: string, signal: AbortSignal) {
    const { metrics, provider } = this.#deps
    const pool = managedPool(this.#deps, name)
    if (pool === undefined) return undefined
    try {
      return await provider.getInstanceTypes(pool, signal)
    } catch (error) {
      if (!signal.aborted) metrics.nodePoolCostErrors.inc({ nodepool: name })
      throw error
    }
  }
}
