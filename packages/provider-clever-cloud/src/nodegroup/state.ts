/** The meaning of a NodeGroup's status (clever-cloud.md 2.2, 20). */
import type { Condition } from '@tenon/api'
import type { NodeGroup } from './types.ts'

/** The platform's progress with a NodeGroup. */
export type NodeGroupState =
  /** It is being deleted. */
  | { readonly kind: 'terminating' }
  /** Its node exists. */
  | { readonly kind: 'ready' }
  /** Refused for quota; the message may be empty. */
  | { readonly kind: 'overQuota'; readonly message: string }
  /** Refused for another reason. */
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string }
  /** Accepted; something failed that the platform retries. */
  | { readonly kind: 'retrying'; readonly message: string }
  | { readonly kind: 'accepted' }
  /** The platform has not responded. */
  | { readonly kind: 'pending' }

const quotaExceeded = 'QuotaExceeded'
/** Reason of failures that the platform retries. */
const upstreamError = 'UpstreamError'

/** The state of a NodeGroup. An existing node takes precedence over a refusal. */
export function stateOf(group: NodeGroup): NodeGroupState {
  return group.metadata.deletionTimestamp === undefined ? answerTo(group) : { kind: 'terminating' }
}

/** The platform's response to a group, whether or not it is being deleted. */
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

/** Whether the group uses capacity or may do so; a refused one does not. */
export function mayHoldCapacity(group: NodeGroup): boolean {
  const { kind } = answerTo(group)
  return kind !== 'overQuota' && kind !== 'refused'
}

function statusOf(group: NodeGroup, type: string): Condition['status'] | undefined {
  return conditionOf(group, type)?.status
}

/** Another program writes the status, so any field may be absent or invalid. */
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
