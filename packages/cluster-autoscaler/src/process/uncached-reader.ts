/** Reads without a cache (cluster-autoscaler.md 6.6). */
import { kinds, type KubeObject, type Node, type ResourceType } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { ClusterCache } from '../model.ts'
import type { ClusterReader } from '../scale-down/deletion/cluster-reader.ts'

type Client = Pick<KubeClient, 'get' | 'list'>

/** What is read from the API server before something is removed. */
export interface UncachedReader extends ClusterReader {
  listNodes(signal: AbortSignal): Promise<readonly Node[]>
}

/**
 * Lists are compared with the cache, which may have newer objects than a stale list: missing objects are read by name.
 * @param cachedNode the node in the cache.
 * @param relistPods called if the pod cache lacks an existing pod.
 */
export function createUncachedReader(
  client: Client,
  cache: Pick<ClusterCache, 'controllerOf' | 'nodes' | 'pods'>,
  cachedNode: (name: string) => Node | undefined,
  relistPods: (reason: string) => void,
): UncachedReader {
  return {
    node: (name, signal) => client.get(kinds.node, { name }, { signal }),
    listNodes: async (signal) => {
      const listed = await client.list(kinds.node, { signal })
      return [...listed, ...(await unlisted(kinds.node, listed, cache.nodes(), client, signal))]
    },
    podsOf: async (nodeName, signal) => {
      const listed = await client.list(kinds.pod, { fieldSelector: `spec.nodeName=${nodeName}`, signal })
      const all = cache.pods()
      const known = new Set(all.map(({ metadata }) => metadata.uid))
      if (listed.some(({ metadata }) => !known.has(metadata.uid)))
        relistPods('a node has pods that are not known')
      const cached = all.filter(({ spec }) => spec.nodeName === nodeName)
      return [...listed, ...(await unlisted(kinds.pod, listed, cached, client, signal))]
    },
    disruptionBudgets: (signal) => client.list(kinds.podDisruptionBudget, { signal }),
    controllerOf: cache.controllerOf,
    cachedNode,
  }
}

/** Objects that exist although a list lacks them. */
async function unlisted<T extends KubeObject>(
  type: ResourceType<T>,
  listed: readonly T[],
  cached: readonly T[],
  client: Client,
  signal: AbortSignal,
): Promise<readonly T[]> {
  const known = new Set(listed.map(({ metadata }) => metadata.uid))
  const found: T[] = []
  for (const { metadata } of cached) {
    const { name, namespace, uid } = metadata
    if (known.has(uid)) continue
    const key = { name, ...(namespace !== undefined && { namespace }) }
    const object = await client.get(type, key, { signal })
    // Another object of this name may be on any node.
    if (object !== undefined && object.metadata.uid === uid) found.push(object)
  }
  return found
}
