/** What becomes of the plan when a pod is bound elsewhere than planned (planned-placement.md). */
import type { Pod } from '@tenon/api'
import { likenessOf } from '@tenon/engine'
import type { ClusterState } from '../state/cluster-state.ts'
import { nominatedNodeOf } from '../state/pods/nominated-pods.ts'
import type { PlanTarget } from '../state/pods/pod-plans.ts'

interface Plans {
  readonly plans: Pick<ClusterState['plans'], 'get' | 'set' | 'podsOf'>
  readonly pods: Pick<ClusterState['pods'], 'unplaced'>
  readonly nominations: Pick<ClusterState['nominations'], 'nodeFor'>
}

/**
 * The pod took room that was kept for others, and leaves its own place free. One that is alike and still waits for
 * the node it took is planned for that place instead: then both nodes hold as many as they were to.
 * @param taken what the pod is bound to.
 * @param left what it was planned for.
 */
export function tradePlaces(
  { plans, pods, nominations }: Plans,
  pod: Pod,
  { taken, left }: { readonly taken: PlanTarget; readonly left: PlanTarget },
): void {
  if (nominations.nodeFor(left) === undefined) return
  const likeness = likenessOf(pod)
  const twins = plans.podsOf(taken).flatMap((uid) => {
    const twin = plans.get(uid)?.steering === 'told' ? pods.unplaced(uid) : undefined
    return twin !== undefined && likenessOf(twin) === likeness ? [twin] : []
  })
  // One that has lost its nomination was tried a moment ago: it is likely the one whose room was taken.
  const twin = twins.find((each) => nominatedNodeOf(each) === '') ?? twins.at(-1)
  const uid = twin?.metadata.uid ?? ''
  const plan = plans.get(uid)
  if (plan !== undefined) plans.set(uid, { ...plan, target: left })
}
