import { labels } from '@tenon/api'
import { done } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import { type ControllerSpec, enqueueChanged, type SingletonSpec } from '../controller.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

const refreshMs = 60 * 60_000

/**
 * Keeps the cost of each NodePool up to date (cluster-state.md 12): `state.nodeclaim` looks up the prices of new instances,
 * `state.pricing` takes all prices again every hour.
 */
export function poolPricing(
  caches: Caches,
  state: ClusterState,
  provider: Pick<CloudProvider, 'getInstanceTypes'>,
  metrics: Pick<Metrics, 'nodePoolCostErrors'>,
  logger: Logger,
): readonly [ControllerSpec, SingletonSpec] {
  const { poolCosts } = state
  const typesOf = async (name: string, signal: AbortSignal) => {
    const pool = state.managedPool(name)
    if (pool === undefined) return undefined
    try {
      return await provider.getInstanceTypes(pool, signal)
    } catch (error) {
      if (!signal.aborted) metrics.nodePoolCostErrors.inc({ nodepool: name })
      throw error
    }
  }
  const ofNewInstances: ControllerSpec = {
    name: 'state.nodeclaim',
    concurrency: { least: 10, most: 3000 },
    watch(enqueue) {
      caches.nodeClaims.onChange(({ kind, object }) => {
        if (kind !== 'deleted' && poolCosts.lacksPrice(object))
          enqueue(object.metadata.labels?.[labels.nodePool] ?? '')
      })
      enqueueChanged(caches.nodePools, enqueue)
    },
    async reconcile(name, signal) {
      if (poolCosts.unlooked(name).length === 0) return done
      const types = await typesOf(name, signal)
      for (const bought of types === undefined ? [] : poolCosts.price(name, types))
        logger.warn('price unknown: not included in costs, and not replaced to save money', {
          NodePool: { name },
          ...bought,
        })
      return done
    },
  }
  const refresh: SingletonSpec = {
    name: 'state.pricing',
    async run(signal) {
      const failures: Error[] = []
      for (const { metadata } of caches.nodePools.list()) {
        if (!poolCosts.hasBought(metadata.name)) continue
        try {
          const types = await typesOf(metadata.name, signal)
          if (types !== undefined) poolCosts.reprice(metadata.name, types)
        } catch (cause) {
          signal.throwIfAborted()
          const text = cause instanceof Error ? cause.message : String(cause)
          failures.push(new Error(`NodePool ${metadata.name}: ${text}`, { cause }))
        }
      }
      if (failures.length === 0) return { kind: 'after', delayMs: refreshMs }
      const texts = failures.map(({ message }) => message)
      throw new AggregateError(failures, `reading prices: ${texts.join('; ')}`)
    },
  }
  return [ofNewInstances, refresh]
}
