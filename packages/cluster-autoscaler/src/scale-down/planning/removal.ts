/** Simulates the removal of one node in the snapshot (cluster-autoscaler.md 6.3). */
import type { Node, Pod } from '@tenon/api'
import type { NodeEntry, Snapshot } from '@tenon/filters'
import { unbound } from '../../pods/unbound.ts'
import { type Drain, drainOf } from '../drain/node-drain.ts'
import type { DrainContext } from '../drain/rules.ts'
import { taintValue, withHardTaint } from '../nodes/taints.ts'
import type { UnremovableReason } from '../reasons.ts'
import type { PlacementHints } from './placement-hints.ts'

export interface RemovalContext {
  readonly snapshot: Snapshot
  readonly drain: DrainContext
  /** Names of nodes that pods may move to; removed nodes are taken out. */
  readonly destinations: Set<string>
  readonly hints: PlacementHints
}

export type Removal =
  /** `isRisky`: a PodDisruptionBudget only allows its pods to be evicted one after the other. */
  | { readonly kind: 'removable'; readonly drain: Drain; readonly isRisky: boolean }
  | { readonly kind: 'unremovable'; readonly reason: UnremovableReason }

/** Simulates a removal. A removable node stays removed in the snapshot; otherwise nothing changes. */
export function* removalOf(node: Node, context: RemovalContext): Generator<undefined, Removal, undefined> {
  const { snapshot, destinations, hints } = context
  const { budgets, nowMs } = context.drain
  const { name } = node.metadata
  const pods = [...(snapshot.node(name)?.pods.values() ?? [])].map((facts) => facts.pod)
  const drain = drainOf(pods, context.drain)
  if (drain.kind === 'blocked') {
    return { kind: 'unremovable', reason: { kind: 'BlockedByPod', pod: drain.pod, reason: drain.reason } }
  }
  const mark = snapshot.mark()
  for (const pod of pods) snapshot.release(pod)
  // The node stays in the snapshot, empty and tainted, so that its zone and host name still count as domains.
  snapshot.setNode(withHardTaint(node, taintValue(nowMs), false) ?? node)
  const wasDestination = destinations.delete(name)
  for (const pod of drain.toMove) {
    const place = placeFor(pod, context)
    if (place === undefined) {
      snapshot.revert(mark)
      if (wasDestination) destinations.add(name)
      return { kind: 'unremovable', reason: { kind: 'NoPlaceToMovePods', pod } }
    }
    snapshot.assign(unbound(pod), place.name)
    hints.remember(pod, place.name)
    yield
  }
  const isRisky = budgets.isExceededBy(drain.toMove)
  budgets.take(drain.toMove)
  return { kind: 'removable', drain, isRisky }
}

/** The node of the pod in the last loop if it still fits, else the first on which it fits. */
function placeFor(pod: Pod, { snapshot, destinations, hints }: RemovalContext): NodeEntry | undefined {
  const moved = unbound(pod)
  const hinted = hints.of(pod)
  const entry = hinted === undefined || !destinations.has(hinted) ? undefined : snapshot.node(hinted)
  if (entry !== undefined && snapshot.check(moved, entry) === undefined) return entry
  return snapshot.find(moved, ({ name }) => destinations.has(name))
}
