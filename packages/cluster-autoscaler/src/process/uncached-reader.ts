/** Reads that must not come from a cache (cluster-autoscaler.md 6.6). */
import { kinds, type Node } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { ClusterCache } from '../loop/cluster-cache.ts'
import type { ClusterReader } from '../scale-down/deletion/cluster-reader.ts'

/** @param cachedNode the node as the cache has it. */
export function createUncachedReader(
  client: Pick<KubeClient, 'get' | 'list'>,
  cache: Pick<ClusterCache, 'controllerOf'>,
  cachedNode: (name: string) => Node | undefined,
): ClusterReader {
  return {
    node: (name, signal) => client.get(kinds.node, { name }, { signal }),
    podsOf: (nodeName, signal) =>
      client.list(kinds.pod, { fieldSelector: `spec.nodeName=${nodeName}`, signal }),
    disruptionBudgets: (signal) => client.list(kinds.podDisruptionBudget, { signal }),
    controllerOf: cache.controllerOf,
    cachedNode,
  }
}
