/** Runs one iteration after the other (cluster-autoscaler.md 2.2). */
import { untilAborted } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { Autoscaler } from '../loop/autoscaler.ts'
import type { LoopTrigger } from '../loop/triggers.ts'
import type { MetricSink } from '../model.ts'

export interface LoopDriverDependencies {
  readonly autoscaler: Pick<Autoscaler, 'runOnce' | 'lastChangeMs'>
  readonly trigger: Pick<LoopTrigger, 'next'>
  readonly metrics: MetricSink
  readonly clock: Clock
  readonly logger: Logger
}

/** Pause after an iteration with an unexpected error. */
const pauseAfterBugMs = 1000

/** Runs until `signal` aborts, without waiting for the running iteration. Never rejects. */
export async function driveLoop(dependencies: LoopDriverDependencies, signal: AbortSignal): Promise<void> {
  const { autoscaler, trigger, metrics, clock, logger } = dependencies
  while (!signal.aborted) {
    try {
      const waitsFromMs = clock.monotonic()
      await untilAborted(trigger.next(autoscaler.lastChangeMs, signal), signal)
      const waitedSeconds = (clock.monotonic() - waitsFromMs) / 1000
      metrics.observe('function_duration_seconds', waitedSeconds, { function: 'loopWait' })
      await untilAborted(autoscaler.runOnce(signal), signal)
      // Triggers compare with the start times of the last two iterations, so these must differ.
      await clock.sleep(1, signal)
    } catch (error) {
      if (signal.aborted) return
      logger.error('bug in the loop', { error, stack: error instanceof Error ? error.stack : undefined })
      await pause(clock, signal)
    }
  }
}

async function pause(clock: Clock, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(pauseAfterBugMs, signal)
  } catch {
    // A sleep only ends early at shutdown.
  }
}
