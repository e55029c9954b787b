/** Whether the removal of a candidate is worth a simulation (cluster-autoscaler.md 6.2). */
import { type Node, ownValue } from '@tenon/api'
import type { Snapshot } from '@tenon/filters'
import type { LoopView } from '../../model.ts'
import { annotations } from '../../names.ts'
import type { ScaleDownOptions } from '../../options/options.ts'
import { isNodeReady } from '../../registry/node-state.ts'
import { hardTaintOf, taintTimeMs } from '../nodes/taints.ts'
import { thresholdOf, type Utilization, utilizationOf } from '../nodes/utilization.ts'
import type { UnremovableReason } from '../reasons.ts'

/** With a younger taint, the node counts as being deleted. */
const deletionMs = 5 * 60_000

export interface EligibilityContext {
  readonly nowMs: number
  readonly snapshot: Snapshot
  readonly options: ScaleDownOptions
  readonly deviceUse: LoopView['lookups']['deviceUse']
  readonly recentlyUnremovable: (node: Node) => UnremovableReason | undefined
}

export type Eligibility =
  | { readonly kind: 'eligible'; readonly utilization: Utilization }
  | { readonly kind: 'refused'; readonly reason: UnremovableReason }

export function eligibilityOf(node: Node, context: EligibilityContext): Eligibility {
  const { snapshot, options, nowMs, deviceUse } = context
  const entry = snapshot.node(node.metadata.name)
  if (entry === undefined)
    return refused({ kind: 'UnexpectedError', message: 'the node is not in the snapshot' })
  const reason = refusal(node, context)
  if (reason !== undefined) return refused(reason)
  const utilization = utilizationOf({ node, entry, table: snapshot.table, options, nowMs, deviceUse })
  if (utilization.kind === 'unknown') {
    const message = `the node has no allocatable ${utilization.resource}`
    return refused({ kind: 'UnexpectedError', message })
  }
  const threshold = thresholdOf(utilization, options)
  return utilization.ratio > threshold
    ? refused({ kind: 'NotUnderutilized', utilization, threshold })
    : { kind: 'eligible', utilization }
}

/** Whether the annotation protects the node; only `true` does. */
export function isScaleDownDisabled(node: Node): boolean {
  return ownValue(node.metadata.annotations, annotations.scaleDownDisabled) === 'true'
}

function refusal(node: Node, context: EligibilityContext): UnremovableReason | undefined {
  const recent = context.recentlyUnremovable(node)
  if (recent !== undefined) return recent
  const taint = hardTaintOf(node)
  const taintedMs = taint && taintTimeMs(taint)
  if (taintedMs !== undefined && context.nowMs - taintedMs < deletionMs)
    return { kind: 'CurrentlyBeingDeleted' }
  if (isScaleDownDisabled(node)) return { kind: 'ScaleDownDisabledAnnotation' }
  return !context.options.unreadyEnabled && !isNodeReady(node)
    ? { kind: 'ScaleDownUnreadyDisabled' }
    : undefined
}

function refused(reason: UnremovableReason): Eligibility {
  return { kind: 'refused', reason }
}
