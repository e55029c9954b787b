/** What a provider measures of itself. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ProviderMetric } from '@tenon/provider'

/** Shows the metrics of a provider in every scrape. */
export function showProviderMetrics(registry: Registry, metrics: readonly ProviderMetric[]): void {
  for (const metric of metrics) registry.registerMetric(familyOf(metric))
}

function familyOf(metric: ProviderMetric): Counter | Gauge {
  const config = { name: metric.name, help: metric.help, registers: [] }
  if (metric.type === 'counter') {
    return new Counter({
      ...config,
      collect() {
        this.reset()
        this.inc(metric.value() ?? 0)
      },
    })
  }
  return new Gauge({
    ...config,
    collect() {
      const value = metric.value()
      if (value === undefined) this.remove({})
      else this.set(value)
    },
  })
}
