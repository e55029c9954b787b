/** Operators with a faulty part. */
import type { Operator } from '@tenon/operator'

/** Every scrape begins to count again. */
export function countsAnew({ metrics: { registry } }: Operator): void {
  const scrape = registry.metrics.bind(registry)
  registry.metrics = async () => {
    const page = await scrape()
    registry.resetMetrics()
    return page
  }
}

/** Series of pods that have gone stay. */
export function keepsSeriesOfPods({ metrics: { cluster } }: Operator): void {
  if (cluster?.pods !== undefined) cluster.pods.state.drop = () => undefined
}

/** A figure that is asked for at a scrape cannot be had. */
export function failsScrapes({ passAges }: Operator): void {
  passAges.agesMs = () => {
    throw new Error('no such controller')
  }
}
