/** Which instances of a static NodePool are missed least (cluster-state.md 15.4). */
import { type NodeClaim, parseNillableDuration, type Pod } from '@tenon/api'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { doNotDisrupt, evictionCost, isDaemonPod } from '../../state/pods/pods.ts'

/** An instance and every pod bound to it, ended ones too, or on its way there. */
export interface LoadedNode {
  readonly stateNode: StateNode
  readonly pods: readonly Pod[]
}

interface Loss extends LoadedNode {
  readonly isEmpty: boolean
  readonly isProtected: boolean
  readonly cost: number
}

/**
 * Instances that hold nothing first, then those without protected pods, then those whose pods cost the
 * least to move for the time the instance has left; among equals those that joined last, then by name.
 */
export function inOrderOfLoss(stateNodes: readonly LoadedNode[], nowMs: number): readonly StateNode[] {
  const losses = stateNodes.map(({ stateNode, pods }): Loss => {
    const isProtected = pods.some((pod) => doNotDisrupt(pod, nowMs).kind === 'active')
    return {
      stateNode,
      pods,
      isProtected,
      isEmpty: pods.every(isDaemonPod) && !isProtected,
      cost: pods.reduce((sum, pod) => sum + evictionCost(pod), 0) * lifetimeRemaining(stateNode.claim, nowMs),
    }
  })
  return losses.toSorted(compareLosses).map(({ stateNode }) => stateNode)
}

function compareLosses(a: Loss, b: Loss): number {
  if (a.isEmpty !== b.isEmpty) return a.isEmpty ? -1 : 1
  if (!a.isEmpty && a.isProtected !== b.isProtected) return a.isProtected ? 1 : -1
  if (!a.isEmpty && a.cost !== b.cost) return a.cost - b.cost
  return readiness(a.stateNode) - readiness(b.stateNode) || (a.stateNode.name < b.stateNode.name ? -1 : 1)
}

/** How far an instance has come: 0 before it is a node, 2 when pods may run on it. */
function readiness({ node, isInitialized }: StateNode): number {
  return node === undefined ? 0 : isInitialized ? 2 : 1
}

/** From 1 for a new instance to 0 for one that expires now; 1 for one that never does. */
function lifetimeRemaining(claim: NodeClaim | undefined, nowMs: number): number {
  const expireAfterMs = parseNillableDuration(claim?.spec.expireAfter)
  if (expireAfterMs === undefined || !Number.isFinite(expireAfterMs)) return 1
  if (expireAfterMs <= 0) return 0
  const ageMs = nowMs - Date.parse(claim?.metadata.creationTimestamp ?? '')
  return Number.isNaN(ageMs) ? 1 : Math.min(1, Math.max(0, (expireAfterMs - ageMs) / expireAfterMs))
}
