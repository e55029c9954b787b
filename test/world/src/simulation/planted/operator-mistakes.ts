/** Operators with a faulty part. */
import type { Operator } from '@tenon/operator'

/** Counters are reset by every scrape. */
export function countsAnew({ metrics: { registry } }: Operator): void {
  const scrape = registry.metrics.bind(registry)
  registry.metrics = async () => {
    const page = await scrape()
    registry.resetMetrics()
    return page
  }
}

/** Series of deleted pods are kept. */
export function keepsSeriesOfPods({ metrics: { cluster } }: Operator): void {
  if (cluster?.pods !== undefined) cluster.pods.state.drop = () => undefined
}

/** A value that is computed at a scrape throws. */
export function failsScrapes({ passAges }: Operator): void {
  passAges.agesMs = () => {
    throw new Error('no such controller')
  }
}
