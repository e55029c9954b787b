/** `metrics.nodepool`: limits, usage and cost of NodePools (operations.md 9.2). */
import { type NodePool, type ResourceList } from '@tenon/api'
import type { ReconcileResult } from '@tenon/kube'
import { type ClusterMetrics, resourceLabel, shownAmount } from './cluster-metrics.ts'
import type { KeptGauge } from '../gauges.ts'
import type { SingletonSpec } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'managedPool' | 'parsed' | 'poolCosts'>
  readonly metrics: Pick<ClusterMetrics, 'poolCost' | 'poolLimit' | 'poolUnpriced' | 'poolUsage'>
}

const periodMs = 10_000

/** Recomputes only NodePools that changed. */
export class NodePoolMetrics implements SingletonSpec {
  readonly name = 'metrics.nodepool'
  readonly #deps: Dependencies
  readonly #shown = new Map<string, NodePool>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    deps.caches.nodePools.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#drop(object.metadata.name)
    })
  }

  run(): Promise<ReconcileResult> {
    const { caches, state } = this.#deps
    for (const { metadata } of caches.nodePools.list()) {
      const { name } = metadata
      const pool = state.managedPool(name)
      if (pool === undefined) {
        this.#drop(name)
        continue
      }
      const { pricePerHour, unpriced } = state.poolCosts.of(name)
      this.#deps.metrics.poolCost.show(name, [{ labels: { nodepool: name }, value: pricePerHour }])
      if (unpriced === 0) this.#deps.metrics.poolUnpriced.drop(name)
      else this.#deps.metrics.poolUnpriced.show(name, [{ labels: { nodepool: name }, value: unpriced }])
      if (this.#shown.get(name) === pool) continue
      this.#shown.set(name, pool)
      this.#show(this.#deps.metrics.poolLimit, name, pool.spec.limits)
      this.#show(this.#deps.metrics.poolUsage, name, pool.status?.resources)
    }
    return Promise.resolve({ kind: 'after', delayMs: periodMs })
  }

  #show(gauge: KeptGauge, nodepool: string, amounts: ResourceList | undefined): void {
    gauge.show(
      nodepool,
      Object.entries(this.#deps.state.parsed(amounts)).map(([resource, amount]) => ({
        labels: { resource_type: resourceLabel(resource), nodepool },
        value: shownAmount(resource, amount),
      })),
    )
  }

  #drop(name: string): void {
    this.#shown.delete(name)
    const { poolLimit, poolUsage, poolCost, poolUnpriced } = this.#deps.metrics
    for (const gauge of [poolLimit, poolUsage, poolCost, poolUnpriced]) gauge.drop(name)
  }
}
