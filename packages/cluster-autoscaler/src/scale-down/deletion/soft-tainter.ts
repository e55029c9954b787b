/** Taints candidates, a few in each loop (cluster-autoscaler.md 6.1). */
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterWriter } from '../../model.ts'
import type { SoftTaintChange } from '../nodes/soft-taints.ts'
import { taintValue, withoutSoftTaint, withSoftTaint } from '../nodes/taints.ts'

export interface SoftTainterDependencies {
  readonly writer: ClusterWriter
  readonly clock: Clock
  readonly logger: Logger
  /** `--max-bulk-soft-taint-count`. */
  readonly maxCount: number
  /** `--max-bulk-soft-taint-time`. */
  readonly maxMs: number
}

/** Writes the first changes, up to the limits of a loop. The next loop finds the rest again. */
export async function writeSoftTaints(
  changes: readonly SoftTaintChange[],
  { writer, clock, logger, maxCount, maxMs }: SoftTainterDependencies,
  signal: AbortSignal,
): Promise<void> {
  const startMs = clock.monotonic()
  for (const { nodeName, verb } of changes.slice(0, maxCount)) {
    if (clock.monotonic() - startMs >= maxMs) return
    const value = taintValue(clock.now())
    try {
      await writer.updateNode(
        nodeName,
        (node) => (verb === 'add' ? withSoftTaint(node, value) : withoutSoftTaint(node)),
        signal,
      )
    } catch (error) {
      if (signal.aborted) throw error
      logger.warn('could not write the candidate taint of a node', { node: nodeName, verb, error })
    }
  }
}
