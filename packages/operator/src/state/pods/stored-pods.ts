import type { Pod } from '@tenon/api'
import type { Caches } from '../caches.ts'
import type { ClusterState } from '../cluster-state.ts'

export interface StoredPodParts {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'isWellFormed'>
}

/** The pod as it is stored, without what decisions changed of it. */
export function storedPod({ caches, state }: StoredPodParts, pod: Pod): Pod {
  const { name, namespace, uid } = pod.metadata
  const stored = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
  return stored?.metadata.uid === uid && stored !== undefined && state.isWellFormed(stored) ? stored : pod
}
