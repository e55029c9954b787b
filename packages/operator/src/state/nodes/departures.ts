/** How long an instance has been going away, and how long it may. */
import { annotations, type KubeObject, type NodeClaim } from '@tenon/api'
import type { StateNode } from './state-node.ts'

/** A drain that budgets have not let end for so long has had room kept for its pods in vain. */
const heldUpMs = 10 * 60_000

/** Unix milliseconds by which the claim's Node is to be empty: Infinity without a limit, NaN if unreadable. */
export function deadlineMsOf(claim: NodeClaim | undefined): number {
  const text = claim?.metadata.annotations?.[annotations.terminationTimestamp]
  return text === undefined ? Number.POSITIVE_INFINITY : Date.parse(text)
}

/** Whether an instance has been going away for ten minutes, and has more than that before it must be empty. */
export function isHeldUp({ node, claim }: Pick<StateNode, 'node' | 'claim'>, nowMs: number): boolean {
  const sinceMs = Math.min(deletedAtMs(node), deletedAtMs(claim))
  return nowMs - sinceMs >= heldUpMs && deadlineMsOf(claim) - nowMs > heldUpMs
}

/** Infinity for what is not being deleted. */
function deletedAtMs(object: KubeObject | undefined): number {
  const { deletionTimestamp } = object?.metadata ?? {}
  return deletionTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(deletionTimestamp)
}
