/** How long questions about removing nodes take, by the controller that asks (scheduling.md 12.4). */
import type { Clock } from '@tenon/runtime'
import type { SchedulingDecider } from './decider.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** The decider as one controller asks it; each answer is measured under the controller's name. */
export function measuredDecider(
  decider: SchedulingDecider,
  controller: string,
  { metrics, clock }: { readonly metrics: Metrics; readonly clock: Pick<Clock, 'monotonic'> },
): SchedulingDecider {
  return {
    decide: (input, options) => decider.decide(input, options),
    examine: async (input, question, options) => {
      const start = clock.monotonic()
      try {
        return await decider.examine(input, question, options)
      } finally {
        metrics.schedulingDuration.observe({ controller }, (clock.monotonic() - start) / 1000)
      }
    },
    close: () => decider.close(),
  }
}
