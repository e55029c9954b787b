/** Reads that must not come from a cache alone (cluster-autoscaler.md 6.6). */
import { kinds, type KubeObject, type Node, type ResourceType } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { ClusterCache } from '../model.ts'
import type { ClusterReader } from '../scale-down/deletion/cluster-reader.ts'

type Client = Pick<KubeClient, 'get' | 'list'>

/** What is asked of the API server before something is removed. */
export interface UncachedReader extends ClusterReader {
  /** All nodes. */
  listNodes(signal: AbortSignal): Promise<readonly Node[]>
}

/**
 * Lists are held against the cache, which may have been told of objects that a list is too old to have: those are
 * asked for one by one.
 * @param cachedNode the node as the cache has it.
 * @param relistPods called when the cache of pods lacks one that is there.
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

/** Objects that a list lacks and that are there all the same. */
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
    // Another one of this name may be anywhere.
    if (object !== undefined && object.metadata.uid === uid) found.push(object)
  }
  return found
}
