/** Cleans up what an earlier process left on nodes (cluster-autoscaler.md 2.3). */
import type { Node } from '@tenon/api'
import { type Logger, messageOf } from '@tenon/runtime'
import type { ClusterWriter, EventSink } from '../../model.ts'
import { deletionCandidateTaint, toBeDeletedTaint } from '../../names.ts'
import { hardTaintOf, softTaintOf, taintTimeMs, withoutHardTaint, withoutSoftTaint } from '../nodes/taints.ts'

export interface CleanupDependencies {
  readonly writer: ClusterWriter
  readonly events: EventSink
  readonly logger: Logger
  /** `--cordon-node-before-terminating`. */
  readonly cordons: boolean
}

/**
 * Removes the taint of an abandoned deletion, and its cordon.
 * @returns whether it is gone.
 */
export async function cleanHardTaint(
  node: Node,
  { writer, events, logger, cordons }: CleanupDependencies,
  signal: AbortSignal,
): Promise<boolean> {
  const { name } = node.metadata
  try {
    await writer.updateNode(name, (newest) => withoutHardTaint(newest, cordons), signal)
    events.object(node, 'Normal', 'ClusterAutoscalerCleanup', removedText(toBeDeletedTaint, name))
    return true
  } catch (error) {
    if (signal.aborted) throw error
    const message = `failed to clean ${toBeDeletedTaint} on node ${name}: ${messageOf(error)}`
    events.object(node, 'Warning', 'ClusterAutoscalerCleanup', message)
    logger.warn('could not remove a deletion mark that was left on a node', { node: name, error })
    return false
  }
}

/** Nodes with a deletion taint. */
export function hardTainted(nodes: readonly Node[]): readonly Node[] {
  return nodes.filter((node) => hardTaintOf(node) !== undefined)
}

/** Nodes whose candidate taint is older than `ttlMs`, or has no valid time. */
export function staleCandidates(nodes: readonly Node[], nowMs: number, ttlMs: number): readonly Node[] {
  return nodes.filter((node) => {
    const taint = softTaintOf(node)
    if (taint === undefined) return false
    const setMs = taintTimeMs(taint)
    return setMs === undefined || nowMs - setMs >= ttlMs
  })
}

export async function cleanSoftTaint(
  node: Node,
  { writer, events, logger }: CleanupDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { name } = node.metadata
  try {
    await writer.updateNode(name, withoutSoftTaint, signal)
    events.object(node, 'Normal', 'ClusterAutoscalerCleanup', removedText(deletionCandidateTaint, name))
  } catch (error) {
    if (signal.aborted) throw error
    const message = `failed to clean ${deletionCandidateTaint} on node ${name}: ${messageOf(error)}`
    events.object(node, 'Warning', 'ClusterAutoscalerCleanup', message)
    logger.warn('could not remove a candidate taint that was left on a node', { node: name, error })
  }
}

function removedText(taintKey: string, nodeName: string): string {
  return `removed ${taintKey} taint from node ${nodeName}`
}
