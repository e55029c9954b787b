/** Room that preemption is about to give to a group (gangs.md 7.1). */
import type { Pod } from '@tenon/api'
import type { PodGroupInput } from '@tenon/engine'
import type { ClusterState } from '../../state/cluster-state.ts'

type State = Pick<ClusterState, 'isWellFormed' | 'pods'>

/**
 * The pods of each node that stay, of nodes where others were preempted by the scheduler and have not gone yet: once
 * they are gone a group of higher priority has their room, and needs no other node. After their grace period nobody
 * knows whether they go.
 */
export function withoutPreempted(
  state: State,
  groups: readonly PodGroupInput[],
  nowMs: number,
): ReadonlyMap<string, readonly Pod[]> {
  if (groups.length === 0) return new Map()
  const highest = Math.max(...groups.map(({ priority }) => priority))
  const isGiven = (pod: Pod) => (pod.spec.priority ?? 0) < highest && isPreempted(pod, nowMs)
  const bound = state.pods.bound()
  const left = new Map<string, Pod[]>()
  for (const pod of bound) if (isGiven(pod)) left.set(pod.spec.nodeName ?? '', [])
  if (left.size === 0) return left
  for (const pod of bound)
    if (!isGiven(pod) && state.isWellFormed(pod)) left.get(pod.spec.nodeName ?? '')?.push(pod)
  return left
}

function isPreempted({ metadata, status }: Pod, nowMs: number): boolean {
  if (!(Date.parse(metadata.deletionTimestamp ?? '') > nowMs)) return false
  return (status?.conditions ?? []).some(
    ({ type, status: is, reason }) =>
      type === 'DisruptionTarget' && is === 'True' && reason === 'PreemptionByScheduler',
  )
}
