/** The pods on a node by the API server, right before an action (reports-2.md 1, 2). */
import { type Clock, messageOf } from '@tenon/runtime'
import type { AutoscalerOptions } from '../../options/options.ts'
import { hasEnded, isExpendable } from '../../pods/classes.ts'
import { DisruptionBudgets } from '../drain/disruption-budgets.ts'
import { type Drain, drainOf } from '../drain/node-drain.ts'
import { renderReason } from '../reasons.ts'
import type { ClusterReader } from './cluster-reader.ts'

export interface NodeCheckDependencies {
  readonly options: Pick<AutoscalerOptions, 'loop' | 'scaleDown'>
  readonly reader: Pick<ClusterReader, 'podsOf' | 'disruptionBudgets' | 'controllerOf'>
  readonly clock: Pick<Clock, 'now'>
}

/** The drain that the node needs now, or why it stays. */
export type NodeCheck = Drain | { readonly kind: 'stays'; readonly why: string }

/** Reads pods and budgets, and applies the drain rules. Only rejects when the signal aborts. */
export async function checkNodeNow(
  nodeName: string,
  { options, reader, clock }: NodeCheckDependencies,
  signal: AbortSignal,
): Promise<NodeCheck> {
  try {
    const [pods, budgets] = await Promise.all([
      reader.podsOf(nodeName, signal),
      reader.disruptionBudgets(signal),
    ])
    const { expendablePodsPriorityCutoff } = options.loop
    const counted = pods.filter((pod) => !hasEnded(pod) && !isExpendable(pod, expendablePodsPriorityCutoff))
    const drain = drainOf(counted, {
      nowMs: clock.now(),
      options: options.scaleDown,
      controllerOf: reader.controllerOf,
      budgets: new DisruptionBudgets(budgets),
    })
    if (drain.kind === 'blocked')
      return stays(renderReason({ kind: 'BlockedByPod', pod: drain.pod, reason: drain.reason }))
    const [awaited] = drain.awaited
    return awaited === undefined
      ? drain
      : stays(renderReason({ kind: 'BlockedByOnCompletionPod', pod: awaited }))
  } catch (error) {
    if (signal.aborted) throw error
    return stays(`its pods could not be read again: ${messageOf(error)}`)
  }
}

function stays(why: string): NodeCheck {
  return { kind: 'stays', why }
}
