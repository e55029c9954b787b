/** Decisions within their time, measured. */
import type { SchedulingResult } from '@tenon/engine'
import { type Clock, type Random, uuid } from '@tenon/runtime'
import type { SchedulingDecider } from '../decide/decider.ts'
import type { GatheredInput } from './input/scheduling-input.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly decider: Pick<SchedulingDecider, 'decide'>
  readonly metrics: Pick<Metrics, 'schedulingDuration' | 'schedulingQueueDepth' | 'schedulingUnfinishedWork'>
  readonly clock: Clock
  readonly random: Random
  readonly settings: Pick<Settings, 'solveTimeoutMs'>
}

const controller = 'provisioner'
/** How often the age of a decision under way is told. */
const unfinishedWorkMs = 1000

export class TimedDecider {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async decide(input: GatheredInput, signal: AbortSignal): Promise<SchedulingResult> {
    const { clock, decider, metrics, random, settings } = this.#deps
    const series = { controller, scheduling_id: uuid(random) }
    const start = clock.monotonic()
    const elapsedMs = () => clock.monotonic() - start
    // The last depth stays until the next decision begins.
    metrics.schedulingQueueDepth.reset()
    metrics.schedulingQueueDepth.set(series, input.pods.length)
    let stopTelling = () => {}
    const tell = () => {
      metrics.schedulingUnfinishedWork.set(series, elapsedMs() / 1000)
      stopTelling = clock.after(unfinishedWorkMs, tell)
    }
    tell()
    try {
      const result = await decider.decide(input, { deadlineMs: settings.solveTimeoutMs, signal })
      metrics.schedulingQueueDepth.set(series, result.undecided.length)
      return result
    } finally {
      stopTelling()
      metrics.schedulingDuration.observe({ controller }, elapsedMs() / 1000)
      metrics.schedulingUnfinishedWork.remove(series)
    }
  }
}
