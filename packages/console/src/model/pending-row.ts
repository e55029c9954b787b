/** Rows of pods that wait for a node. */
import type { Pod } from '@tenon/api'
import type { ToldReason } from './event.ts'
import { isLeaving, present } from './facts.ts'
import type { PodFacts } from './pods.ts'
import type { PendingPodRow, PendingReason } from './view.ts'

export function pendingRowOf(
  { namespace, name, owner, requests }: PodFacts,
  pod: Pod,
  told: ToldReason | undefined,
): PendingPodRow {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const isRefused = scheduled?.status === 'False'
  return {
    id: `${namespace}/${name}`,
    namespace,
    name,
    ...(owner.kind !== 'Pod' && { owner: `${owner.kind.toLowerCase()}/${owner.name}` }),
    requests,
    ...reasonOf(told, isRefused ? scheduled : undefined),
    ...present('plannedFor', told?.plannedFor ?? pod.status?.nominatedNodeName),
    ...present('createdAt', pod.metadata.creationTimestamp),
    ...present('pendingSince', isRefused ? scheduled.lastTransitionTime : undefined),
    deleting: isLeaving(pod),
    labels: pod.metadata.labels ?? {},
  }
}

function reasonOf(
  told: ToldReason | undefined,
  refused: { readonly reason?: string; readonly message?: string } | undefined,
): { readonly reason?: PendingReason } {
  if (told !== undefined) return { reason: { from: 'tenon', code: told.code, message: told.summary } }
  if (refused === undefined) return {}
  const { reason = 'Unschedulable', message = '' } = refused
  return { reason: { from: 'scheduler', code: reason, message } }
}
