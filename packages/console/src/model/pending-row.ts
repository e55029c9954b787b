import type { Pod } from '@tenon/api'
import type { ExplainedReason } from './event.ts'
import { isLeaving, present } from './facts.ts'
import type { PodFacts } from './pods.ts'
import type { PendingPodRow, PendingReason } from './view.ts'

export function pendingRowOf(
  { namespace, name, owner, requests }: PodFacts,
  pod: Pod,
  explained: ExplainedReason | undefined,
): PendingPodRow {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const isRefused = scheduled?.status === 'False'
  return {
    id: `${namespace}/${name}`,
    namespace,
    name,
    ...(owner.kind !== 'Pod' && { owner: `${owner.kind.toLowerCase()}/${owner.name}` }),
    requests,
    ...reasonOf(explained, isRefused ? scheduled : undefined),
    ...present('plannedFor', explained?.plannedFor ?? pod.status?.nominatedNodeName),
    ...present('createdAt', pod.metadata.creationTimestamp),
    ...present('pendingSince', isRefused ? scheduled.lastTransitionTime : undefined),
    deleting: isLeaving(pod),
    labels: pod.metadata.labels ?? {},
  }
}

function reasonOf(
  explained: ExplainedReason | undefined,
  refused: { readonly reason?: string; readonly message?: string } | undefined,
): { readonly reason?: PendingReason } {
  if (explained !== undefined)
    return { reason: { from: 'tenon', code: explained.code, message: explained.summary } }
  if (refused === undefined) return {}
  const { reason = 'Unschedulable', message = '' } = refused
  return { reason: { from: 'scheduler', code: reason, message } }
}
