/** NodeClaims for pods that wait, with notes for later processes. */
import type { NewObject, NodeClaim, NodePool } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { storedPod, type StoredPodParts } from '../../state/pods/stored-pods.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type ClaimedGroup, groupNote } from '../../state/pods/group-claims.ts'
import { launchedFor } from '../../node/evidence/launched-for.ts'
import type { ClaimObjects } from '../../nodeclaim/creation/claim-objects.ts'
import type { Settings } from '../../settings.ts'

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
    if (settings.compatibility === 'karpenter') return {}
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
