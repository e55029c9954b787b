import { formatResources, karpenterKinds, type NodePool, ownValue, type Resources } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { SingletonSpec } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { poolUsage } from '../state/nodepools/pool-usage.ts'
import { isUnreadable } from '../state/readable.ts'

const periodMs = 5000
const unsyncedMs = 1000
const alwaysShown: Resources = { cpu: 0, memory: 0, pods: 0, 'ephemeral-storage': 0, nodes: 0 }

/** `nodepool.counter`: keeps in the status of each pool how many nodes it has, and their resources (api.md 3.5). */
export function nodePoolCounter(client: KubeClient, caches: Caches, state: ClusterState): SingletonSpec {
  return {
    name: 'nodepool.counter',
    async run() {
      if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
      const nodes = state.stateNodes()
      const failures: Error[] = []
      for (const { metadata } of caches.nodePools.list()) {
        const pool = state.managedPool(metadata.name)
        if (pool === undefined || isUnreadable(pool)) continue
        try {
          await write(client, pool, { ...alwaysShown, ...poolUsage(metadata.name, nodes, state.parsed) })
        } catch (cause) {
          // The other pools are counted all the same.
          const text = cause instanceof Error ? cause.message : String(cause)
          failures.push(new Error(`NodePool ${metadata.name}: ${text}`, { cause }))
        }
      }
      if (failures.length > 0)
        throw new AggregateError(failures, failures.map(({ message }) => message).join('; '))
      return { kind: 'after', delayMs: periodMs }
    },
  }
}

async function write(client: KubeClient, pool: NodePool, usage: Resources): Promise<void> {
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
  const { name } = pool.metadata
  try {
    await client.patch(karpenterKinds.nodePool, { name }, { status }, { subresource: 'status' })
  } catch (error) {
    if (!isKubeError(error, 'notFound')) throw error
  }
}
