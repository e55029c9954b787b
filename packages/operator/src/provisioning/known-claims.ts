/** Makes the cluster state know every claim before the first decision. */
import { karpenterKinds } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { isWhole } from '../state/readable.ts'
import type { ClusterState } from '../state/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: Pick<KubeClient, 'list'>
  readonly state: Pick<ClusterState, 'isManaged' | 'seed'>
}

export class KnownClaims {
  readonly #deps: Dependencies
  #hasLearned = false

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Asks once: a cache that follows late may not show what another process made. */
  async settle(signal: AbortSignal): Promise<void> {
    if (this.#hasLearned) return
    const { client, state } = this.#deps
    for (const claim of await client.list(karpenterKinds.nodeClaim, { signal }))
      if (isWhole(karpenterKinds.nodeClaim.kind, claim) && state.isManaged(claim)) state.seed(claim)
    this.#hasLearned = true
  }
}
