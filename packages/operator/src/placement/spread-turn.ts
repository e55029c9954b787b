/** Which pods that must spread are not nominated yet (planned-placement.md). */
import { matchesSelector, type Pod } from '@tenon/api'
import { hardSpreadOf } from '@tenon/engine'
import type { ClusterState } from '../state/cluster-state.ts'

interface Waiting {
  readonly plans: Pick<ClusterState['plans'], 'get' | 'podsOf'>
  readonly pods: Pick<ClusterState['pods'], 'unplaced'>
}

/**
 * Whether pods that this one must spread with, and that are planned for the same node, go first. The
 * scheduler counts pods nominated for a node as if they ran there, and none of the other nodes': more of
 * them at a time than the skew allows would refuse each other, and a pod that is refused loses its
 * nomination.
 */
export function awaitsTwins({ plans, pods }: Waiting, pod: Pod): boolean {
  const uid = pod.metadata.uid ?? ''
  const target = plans.get(uid)?.target
  const constraints = hardSpreadOf(pod)
  if (constraints.length === 0 || target === undefined) return false
  const planned = plans.podsOf(target)
  const ahead = planned.slice(0, planned.indexOf(uid)).flatMap((each) => pods.unplaced(each) ?? [])
  return constraints.some(({ maxSkew, labelSelector }) => {
    if (labelSelector === undefined) return false
    const counting = ahead.filter(
      ({ metadata }) =>
        metadata.namespace === pod.metadata.namespace &&
        matchesSelector(labelSelector, metadata.labels ?? {}),
    )
    return counting.length >= maxSkew
  })
}
