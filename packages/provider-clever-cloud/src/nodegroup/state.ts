/** What the status of a NodeGroup means (clever-cloud.md 2.2, 20). */
import type { Condition } from '@tenon/api'
import type { NodeGroup } from './types.ts'

/** Where the platform is with a NodeGroup. */
export type NodeGroupState =
  /** It is being deleted. */
  | { readonly kind: 'terminating' }
  /** Its node is there. */
  | { readonly kind: 'ready' }
  /** Refused for want of quota; the platform may give no message. */
  | { readonly kind: 'overQuota'; readonly message: string }
  /** Refused for another reason. */
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string }
  /** Accepted; something failed that the platform tries again itself. */
  | { readonly kind: 'retrying'; readonly message: string }
  | { readonly kind: 'accepted' }
  /** The platform has not answered. */
  | { readonly kind: 'pending' }

const quotaExceeded = 'QuotaExceeded'
/** The reason of failures that the platform tries again. */
const upstreamError = 'UpstreamError'

/** The state of a NodeGroup. A node that is there counts for more than a refusal beside it. */
export function stateOf(group: NodeGroup): NodeGroupState {
  return group.metadata.deletionTimestamp === undefined ? answerTo(group) : { kind: 'terminating' }
}

/** What the platform has said to a group, whether or not that is being deleted. */
function answerTo(group: NodeGroup): Exclude<NodeGroupState, { readonly kind: 'terminating' }> {
  if (statusOf(group, 'Ready') === 'True') return { kind: 'ready' }
  const failed = conditionOf(group, 'ReconcileFailed')
  const isFailed = failed?.status === 'True'
  const { reason, message } = isFailed ? textsOf(failed) : { reason: '', message: '' }
  if (group.status?.phase === quotaExceeded || reason === quotaExceeded) return { kind: 'overQuota', message }
  if (reason === upstreamError) return { kind: 'retrying', message }
  if (isFailed) return { kind: 'refused', reason, message }
  return statusOf(group, 'ReconcileInProgress') === 'True' ? { kind: 'accepted' } : { kind: 'pending' }
}

/** Whether the group has, or may have, taken capacity: one that was refused has not. */
export function mayHoldCapacity(group: NodeGroup): boolean {
  const { kind } = answerTo(group)
  return kind !== 'overQuota' && kind !== 'refused'
}

function statusOf(group: NodeGroup, type: string): Condition['status'] | undefined {
  return conditionOf(group, type)?.status
}

/** Another program writes the status: nothing in it has to be there, or of the right form. */
function conditionOf(group: NodeGroup, type: string): Condition | undefined {
  const conditions: unknown = group.status?.conditions
  if (!Array.isArray(conditions)) return undefined
  return (conditions as readonly (Condition | null)[]).find((each) => each?.type === type) ?? undefined
}

function textsOf(condition: Condition): { readonly reason: string; readonly message: string } {
  const { reason, message }: { readonly reason?: unknown; readonly message?: unknown } = condition
  return {
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
  }
}
