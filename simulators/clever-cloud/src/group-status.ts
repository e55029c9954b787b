/** The status of a NodeGroup as the platform writes it (clever-cloud.md 2.2, 20). */
import type { Condition } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { NodeGroup } from '@tenon/provider-clever-cloud'
import {
  effectOf,
  errorEndOf,
  type GroupRecord,
  isSettled,
  quotaExceeded,
  stayingInstances,
} from './group-record.ts'

type GroupStatus = NonNullable<NodeGroup['status']>

/** What a status depends on besides the record. */
export interface StatusFacts {
  /** Monotonic. */
  readonly nowMs: number
  /** Wall clock. */
  readonly wallMs: number
  readonly quotaMessage: string
}

/** The desired status; undefined while the platform has not responded. */
export function statusOf(group: NodeGroup, record: GroupRecord, facts: StatusFacts): GroupStatus | undefined {
  const { decision } = record
  const isTerminating = group.metadata.deletionTimestamp !== undefined
  if (decision.kind === 'undecided' && !isTerminating) return undefined
  const staying = stayingInstances(record)
  const { labels, taints } = group.spec
  return {
    ...phaseOf(record),
    nodeCount: staying.filter(({ hasJoined }) => hasJoined).length,
    targetNodeCount: staying.length,
    ...(decision.kind === 'accepted' && { upstreamId: `nodegroup_${record.uid}` }),
    ...(labels && { labels }),
    ...(taints && { taints }),
    conditions: conditionsOf(group, record, facts).map((condition) => dated(group, condition, facts)),
  }
}

/** Whether a status differs from the stored one, apart from times. */
export function differs(wanted: GroupStatus, stored: NodeGroup['status']): boolean {
  return JSON.stringify(comparable(wanted)) !== JSON.stringify(comparable(stored ?? {}))
}

function comparable(status: GroupStatus): unknown {
  const { phase, nodeCount, targetNodeCount, upstreamId, conditions = [] } = status
  const parts = conditions
    .map(({ type, status: value, reason, message }) => [type, value, reason, message])
    .toSorted(([a = ''], [b = '']) => a.localeCompare(b))
  return [phase, nodeCount, targetNodeCount, upstreamId, parts]
}

function phaseOf(record: GroupRecord): { readonly phase?: string } {
  const { decision, isSynced, refusedCount } = record
  if (decision.kind === 'undecided') return {}
  if (decision.kind === 'refused')
    return { phase: decision.reason === quotaExceeded ? quotaExceeded : 'Failed' }
  if (!isSynced) return { phase: 'Creating' }
  const isOverQuota = refusedCount !== undefined || effectOf(record, 'quotaPhaseWhenReady') !== undefined
  return { phase: isOverQuota ? quotaExceeded : 'Synced' }
}

type NewCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

const condition = (type: string, isTrue: boolean, reason: string, message = ''): NewCondition => ({
  type,
  status: isTrue ? 'True' : 'False',
  reason,
  message,
})

function conditionsOf(group: NodeGroup, record: GroupRecord, facts: StatusFacts): readonly NewCondition[] {
  const { decision, isSynced } = record
  const isTerminating = group.metadata.deletionTimestamp !== undefined
  const isAccepted = decision.kind === 'accepted'
  const isUnderWay = isAccepted && !isTerminating && (!isSynced || !isSettled(record))
  return [
    condition('Ready', isSynced, isSynced ? 'Synced' : 'NotReady'),
    condition('ReconcileInProgress', isUnderWay, isUnderWay ? 'Reconciling' : 'Idle'),
    failureOf(record, facts),
    ...(isTerminating ? [condition('Terminating', true, 'Deleted')] : []),
  ]
}

function failureOf(record: GroupRecord, { nowMs, quotaMessage }: StatusFacts): NewCondition {
  const { decision, refusedCount } = record
  if (decision.kind === 'refused' && decision.byPhaseOnly !== true)
    return condition('ReconcileFailed', true, decision.reason, decision.message)
  if (refusedCount !== undefined) return condition('ReconcileFailed', true, quotaExceeded, quotaMessage)
  if (errorEndOf(record, nowMs) !== undefined)
    return condition('ReconcileFailed', true, 'UpstreamError', 'the platform did not answer; trying again')
  return condition('ReconcileFailed', false, 'Idle')
}

/** With its transition time and observed generation. */
function dated({ metadata, status }: NodeGroup, wanted: NewCondition, { wallMs }: StatusFacts): Condition {
  const old = status?.conditions?.find(({ type }) => type === wanted.type)
  return {
    ...wanted,
    lastTransitionTime: old?.status === wanted.status ? old.lastTransitionTime : rfc3339(wallMs),
    ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
  }
}
