/** How far the launches for a group have come (gangs.md 7.3). */
import type { NodeClaim, Pod } from '@tenon/api'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim } from '../../state/pods/group-claims.ts'
import type { Settings } from '../../settings.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'plans' | 'podGroups'>
  readonly settings: Pick<Settings, 'registrationTimeoutMs'>
}

/** So long before the registration timeout of its first claim a group that is not ready is given up. */
const marginMs = 5_000

export interface Standing {
  /** Members that have not ended, whether or not they have a node. */
  readonly members: readonly Pod[]
  readonly bound: number
  /** Members that have no node and are planned for a claim or node that is there. */
  readonly planned: number
  /** Undefined when there is no such group any more. */
  readonly minCount: number | undefined
  /** Whether enough members run, or have a place on its way. */
  readonly isWhole: boolean
}

export class GroupStanding {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  of(id: string): Standing {
    const { plans, podGroups } = this.#deps.state
    const members = podGroups.members(id)
    const hasNode = ({ spec }: Pod) => (spec.nodeName ?? '') !== ''
    const bound = members.filter(hasNode).length
    const planned = members.filter(
      (pod) => !hasNode(pod) && plans.get(pod.metadata.uid ?? '') !== undefined,
    ).length
    const ref = podGroups.ref(id)
    const minCount = ref && podGroups.get(ref)?.minCount
    return {
      members,
      bound,
      planned,
      minCount,
      isWhole: minCount !== undefined && bound + planned >= minCount,
    }
  }

  /** Tells of groups whose claims change, and of those with claims of which something else does. */
  onChange(listener: (id: string) => void): void {
    const { caches, state } = this.#deps
    caches.nodeClaims.onChange(({ object }) => {
      for (const { id } of groupsOfClaim(object)) listener(id)
    })
    state.podGroups.changes.add((id) => {
      if (this.claimsOf(id).length > 0) listener(id)
    })
  }

  /** Claims launched for the group that stay. */
  claimsOf(id: string): readonly NodeClaim[] {
    return this.#deps.caches.nodeClaims
      .byIndex(indexes.byPodGroup, id)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  }

  /** When the claim is waited for no longer; Unix milliseconds. */
  deadlineMs({ metadata }: NodeClaim): number {
    const createdMs = Date.parse(metadata.creationTimestamp ?? '')
    return createdMs + this.#deps.settings.registrationTimeoutMs - marginMs
  }
}
