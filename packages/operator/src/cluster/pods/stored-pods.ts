import type { Pod } from '@tenon/api'
import type { Caches } from '../caches.ts'
import type { ClusterState } from '../cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'isWellFormed'>
}

/** Pods without what decisions changed of them. */
export class StoredPods {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  of(pod: Pod): Pod {
    const { name, namespace, uid } = pod.metadata
    const { caches, state } = this.#deps
    const stored = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
    return stored?.metadata.uid === uid && stored !== undefined && state.isWellFormed(stored) ? stored : pod
  }
}
