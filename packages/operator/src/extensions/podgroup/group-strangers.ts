/** Ordinary pods that would take room on the nodes of a group the moment they open (gangs.md 7.4). */
import {
  type Node,
  type NodeClaim,
  ownValue,
  type Pod,
  podRequests,
  sameTaint,
  tolerates,
  unregisteredTaint,
} from '@tenon/api'
import type { ClusterState } from '../../state/cluster-state.ts'
import { startupTaintKind } from '../../state/nodes/startup-taints.ts'

interface Dependencies {
  readonly state: Pick<
    ClusterState,
    'isWellFormed' | 'parsed' | 'plans' | 'podGroups' | 'pods' | 'taintsOfCloud'
  >
}

export class GroupStrangers {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Whether an ordinary pod waits for another node and would fit on one of these: the scheduler tries it before the
   * group, which then no longer fits.
   * @param claims those of the group.
   */
  areNear(claims: readonly NodeClaim[], nodes: readonly Node[]): boolean {
    const { plans, podGroups, pods } = this.#deps.state
    const own = new Set(claims.map(({ metadata }) => metadata.name))
    for (const [uid, { target }] of plans.entries()) {
      if (target.kind === 'claim' && own.has(target.name)) continue
      const pod = pods.unplaced(uid)
      if (pod === undefined || podGroups.of(pod) !== undefined) continue
      if (nodes.some((node) => this.#couldTake(node, pod))) return true
    }
    return false
  }

  /** Whether the node could take the pod if nothing ran there, as far as pods that are not there are no matter. */
  #couldTake({ metadata, spec, status }: Node, pod: Pod): boolean {
    const { state } = this.#deps
    if (!state.isWellFormed(pod)) return false
    const isSelected = Object.entries(pod.spec.nodeSelector ?? {}).every(
      ([key, value]) => ownValue(metadata.labels, key) === value,
    )
    if (!isSelected) return false
    const isKeptAway = (spec?.taints ?? []).some(
      (taint) =>
        taint.effect !== 'PreferNoSchedule' &&
        !sameTaint(taint, unregisteredTaint) &&
        startupTaintKind(taint, undefined, state.taintsOfCloud) === undefined &&
        !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
    )
    if (isKeptAway) return false
    const has = state.parsed(status?.allocatable)
    return Object.entries(podRequests(pod.spec)).every(
      ([name, amount]) => amount <= (ownValue(has, name) ?? 0),
    )
  }
}
