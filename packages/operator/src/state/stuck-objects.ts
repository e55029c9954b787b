/** What is so slow to become usable that the rest of the cluster should not wait for it. */
import { conditionOf, type NodeClaim, type ObjectMeta } from '@tenon/api'

/** A claim whose launch has failed, and a node that does not say what it is, are waited for this long. */
const failingMs = 30_000
/** A launch that has not ended yet may still. */
const slowMs = 2 * 60_000

/** Whether a claim without an instance has been so for too long. */
export function isStuckClaim(claim: NodeClaim, nowMs: number): boolean {
  const { status, reason = '' } = conditionOf(claim, 'Launched') ?? {}
  const hasFailed = status === 'Unknown' && reason !== '' && reason !== 'AwaitingReconciliation'
  return isOlder(claim.metadata, hasFailed ? failingMs : slowMs, nowMs)
}

/** Whether a node that does not say what it is has been so for too long. */
export function isStuckNode({ metadata }: { readonly metadata: ObjectMeta }, nowMs: number): boolean {
  return isOlder(metadata, failingMs, nowMs)
}

function isOlder({ creationTimestamp = '' }: ObjectMeta, ms: number, nowMs: number): boolean {
  return nowMs - Date.parse(creationTimestamp) > ms
}
