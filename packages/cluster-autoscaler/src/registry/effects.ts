/** The consequences of a registry update: events, counters, and lower targets (cluster-autoscaler.md 2.4). */
import type { NodeGroups } from '@tenon/provider'
import { type Logger, messageOf } from '@tenon/runtime'
import type { EventSink } from '../model.ts'
import { type RegistryUpdate, type SizeFix, type TimedOut, timeoutText } from './cluster-state.ts'

export interface EffectDependencies {
  readonly groups: Pick<NodeGroups, 'decreaseTargetSize' | 'group'>
  readonly events: EventSink
  /** Counts a failed scale-up and its nodes. */
  readonly countFailure: (groupId: string, reason: string, nodes: number) => void
  readonly logger: Logger
}

/** Reports failed requests and members, and lowers targets that were not reached. */
export async function applyUpdate(
  update: RegistryUpdate,
  dependencies: EffectDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { events, countFailure } = dependencies
  for (const { groupId, code, message, count } of update.failedCreations) {
    events.status(
      'Warning',
      'ScaleUpFailed',
      `${count} new nodes of group ${groupId} failed with ${code}: ${message}`,
    )
    countFailure(groupId, code, count)
  }
  for (const request of update.timedOut) {
    events.status('Warning', 'ScaleUpTimedOut', timeoutText(request))
    countFailure(request.groupId, 'timeout', request.increase)
    if (request.takesBack > 0) await takeBack(request, dependencies, signal)
  }
}

async function takeBack(
  { groupId, takesBack }: TimedOut,
  { groups, events, logger }: EffectDependencies,
  signal: AbortSignal,
): Promise<void> {
  try {
    const result = await groups.decreaseTargetSize(groupId, takesBack, signal)
    const sizeTakenBack = result === 'done'
    logger.info('scale-up timed out', { nodeGroup: groupId, nodes: takesBack, sizeTakenBack })
  } catch (error) {
    if (signal.aborted) throw error
    events.status(
      'Warning',
      'FailedToRevertScaleUp',
      `could not take ${takesBack} nodes of group ${groupId} back: ${messageOf(error)}`,
    )
  }
}

/**
 * Lowers targets to actual sizes.
 * @returns whether any was lowered. If the cloud cannot do it, the loop must continue.
 */
export async function fixSizes(
  fixes: readonly SizeFix[],
  { groups, logger }: Pick<EffectDependencies, 'groups' | 'logger'>,
  signal: AbortSignal,
): Promise<boolean> {
  let isAnyFixed = false
  for (const { groupId, delta } of fixes) {
    try {
      const before = groups.group(groupId)?.targetSize
      if ((await groups.decreaseTargetSize(groupId, delta, signal)) === 'unsupported') continue
      // The cloud keeps what others have requested: then the loop must go on.
      const after = groups.group(groupId)?.targetSize
      if (before !== undefined && after !== undefined && after >= before) continue
      isAnyFixed = true
      logger.info('lowered the size of a node group to the nodes that it has', { nodeGroup: groupId, delta })
    } catch (error) {
      if (signal.aborted) throw error
      logger.warn('could not lower the size of a node group', { nodeGroup: groupId, delta, error })
    }
  }
  return isAnyFixed
}
