/** The state of a node (cluster-autoscaler.md 2.4). */
import type { Node } from '@tenon/api'
import { toBeDeletedTaint } from '../names.ts'

export type NodeState = 'deleted' | 'suspended' | 'ready' | 'notStarted' | 'unready'

/** Conditions that make a node not ready if they are True. */
const badConditions = new Set(['DiskPressure', 'NetworkUnavailable'])
/** Taints that make a node not ready. */
const badTaints = new Set([
  'node.kubernetes.io/not-ready',
  // No pod runs there before the cloud controller manager has initialized the node, even if the kubelet is
  // ready.
  'node.cloudprovider.kubernetes.io/uninitialized',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/network-unavailable',
])

/** The condition Ready. */
export function readyOf({ status }: Node) {
  return status?.conditions?.find(({ type }) => type === 'Ready')
}

/** Whether pods can start on a node. A node without conditions is not ready. */
export function isNodeReady(node: Node): boolean {
  const conditions = node.status?.conditions ?? []
  if (!conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return false
  if (conditions.some(({ type, status }) => badConditions.has(type) && status === 'True')) return false
  return !(node.spec?.taints ?? []).some(({ key }) => badTaints.has(key))
}

/** A copy that is not ready. */
export function asNotReady(node: Node, reason: string): Node {
  const conditions = (node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready')
  const ready = readyOf(node)
  const notReady = { ...ready, type: 'Ready', status: 'False', reason } as const
  return { ...node, status: { ...node.status, conditions: [...conditions, notReady] } }
}

/** Whether this autoscaler has begun to remove a node. */
export function isBeingDeleted(node: Node): boolean {
  return (node.spec?.taints ?? []).some(({ key }) => key === toBeDeletedTaint)
}

/**
 * @param maxStartupMs how long a new node may take to become ready.
 * @param hasInstance as the cloud says; undefined = the deletion taint tells.
 */
export function nodeState(node: Node, nowMs: number, maxStartupMs: number, hasInstance?: boolean): NodeState {
  if (hasInstance === undefined ? isBeingDeleted(node) : !hasInstance) return 'deleted'
  const conditions = node.status?.conditions ?? []
  if (conditions.some(({ type, status }) => type === 'Suspended' && status === 'True')) return 'suspended'
  if (isNodeReady(node)) return 'ready'
  const createdMs = Date.parse(node.metadata.creationTimestamp ?? '')
  return createdMs + maxStartupMs > nowMs ? 'notStarted' : 'unready'
}
