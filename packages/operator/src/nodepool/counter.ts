/** `nodepool.counter`: how many nodes a pool has and what they hold (api.md 3.5). */
import type { CloudProvider } from '@tenon/provider'
import { formatResources, karpenterKinds, type NodePool, type Resources, ownValue } from '@tenon/api'
import { isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { isUnreadable } from '../state/readable.ts'
import { poolUsage } from '../state/nodepools/pool-usage.ts'
import { managedPool } from '../state/nodepools/managed-pool.ts'
import type { SingletonSpec } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'decidable' | 'parsed' | 'stateNodes'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
}

const periodMs = 5000
const unsyncedMs = 1000
const alwaysShown: Resources = { cpu: 0, memory: 0, pods: 0, 'ephemeral-storage': 0, nodes: 0 }

/** Reconciles the counters in the status of one NodePool. */
export class NodePoolCounter implements SingletonSpec {
  readonly name = 'nodepool.counter'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(): Promise<ReconcileResult> {
    const { caches, state } = this.#deps
    if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    const nodes = state.stateNodes()
    const failures: Error[] = []
    for (const { metadata } of caches.nodePools.list()) {
      const pool = managedPool(this.#deps, metadata.name)
      if (pool === undefined || isUnreadable(pool)) continue
      try {
        await this.#write(pool, { ...alwaysShown, ...poolUsage(metadata.name, nodes, state.parsed) })
      } catch (cause) {
        // One pool that cannot be written does not keep the others from being counted.
        const text = cause instanceof Error ? cause.message : String(cause)
        failures.push(new Error(`NodePool ${metadata.name}: ${text}`, { cause }))
      }
    }
    if (failures.length > 0)
      throw new AggregateError(failures, failures.map(({ message }) => message).join('; '))
    return { kind: 'after', delayMs: periodMs }
  }

  async #write(pool: NodePool, usage: Resources): Promise<void> {
    const resources = formatResources(usage)
    const nodes = usage['nodes'] ?? 0
    const stored = pool.status
    const isSame =
      stored?.nodes === nodes &&
      Object.keys(resources).length === Object.keys(stored.resources ?? {}).length &&
      Object.entries(resources).every(([name, amount]) => ownValue(stored.resources, name) === amount)
    if (isSame) return
    const gone = Object.keys(stored?.resources ?? {}).filter((name) => !Object.hasOwn(resources, name))
    const status = {
      nodes,
      resources: { ...resources, ...Object.fromEntries(gone.map((name) => [name, null])) },
    }
    try {
      await this.#deps.client.patch(
        karpenterKinds.nodePool,
        { name: pool.metadata.name },
        { status },
        { subresource: 'status' },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}
