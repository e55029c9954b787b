/** NodeClaims for pods that wait, with notes for later processes. */
import type { NewObject, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type ClaimedGroup, groupNote } from '../../state/pods/group-claims.ts'
import { launchedFor } from '../../node/evidence/launched-for.ts'
import type { ClaimObjects } from '../../nodeclaim/creation/claim-objects.ts'
import { policyOf, type Settings } from '../../settings.ts'
import type { Caches } from '../../state/caches.ts'

interface Dependencies extends StoredPodParts {
  readonly objects: ClaimObjects
  readonly settings: Pick<Settings, 'compatibility'>
  readonly state: StoredPodParts['state'] & Pick<ClusterState, 'podGroups'>
}

export class PendingClaimObjects {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  of(claim: NewClaim, pool: NodePool): NewObject<NodeClaim> {
    return this.#deps.objects.planned(claim, this.#notes(claim, pool))
  }

  #notes({ pods, podGroups = [] }: NewClaim, pool: NodePool): Readonly<Record<string, string>> {
    const { objects, settings } = this.#deps
    if (!policyOf(settings).learns) return {}
    return {
      ...objects.settingsNote(pool),
      ...launchedFor(pods.map((pod) => storedPod(this.#deps, pod))),
      ...groupNote(this.#groups(podGroups)),
    }
  }

  #groups(ids: readonly string[]): readonly ClaimedGroup[] {
    const { podGroups } = this.#deps.state
    return ids.flatMap((id) => {
      const ref = podGroups.ref(id)
      const group = ref && podGroups.get(ref)
      return group === undefined ? [] : [{ id, uid: group.uid }]
    })
  }
}

interface StoredPodParts {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'isWellFormed'>
}

/** The pod as it is stored, without what decisions changed of it. */
function storedPod({ caches, state }: StoredPodParts, pod: Pod): Pod {
  const { name, namespace, uid } = pod.metadata
  const stored = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
  return stored?.metadata.uid === uid && stored !== undefined && state.isWellFormed(stored) ? stored : pod
}
