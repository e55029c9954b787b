/** Creates metric families from their rows. */
import { Counter, Gauge, Histogram, type Registry, Summary } from 'prom-client'
import { KeptGauge, type KeptSource, LiveGauge, type LiveSeries } from './gauges.ts'
import type { MetricRow } from './rows.ts'

/** Window of the quantiles of summaries; sums and counts are cumulative. */
const summaryAge = { maxAgeSeconds: 600, ageBuckets: 5 }
const quantiles = [0, 0.5, 0.9, 0.99, 1]

export class Families {
  readonly #registry: Registry
  readonly #rows: ReadonlyMap<string, MetricRow>

  constructor(registry: Registry, rows: readonly MetricRow[]) {
    this.#registry = registry
    this.#rows = new Map(rows.map((row) => [row.name, row]))
  }

  counter(name: string): Counter {
    return silentUntilUsed(new Counter(this.#config(name, 'counter')))
  }

  /** @param collect called before each scrape. */
  gauge(name: string, collect?: (gauge: Gauge) => void): Gauge {
    const gauge: Gauge = new Gauge({
      ...this.#config(name, 'gauge'),
      ...(collect && {
        collect() {
          collect(this)
        },
      }),
    })
    return silentUntilUsed(gauge)
  }

  /**
   * @param extraLabels labels that are not in the row.
   * @param source updates the gauge before each scrape.
   */
  kept(
    name: string,
    nowMs: () => number,
    extraLabels: readonly string[] = [],
    source?: KeptSource,
  ): KeptGauge {
    const config = this.#config(name, 'gauge')
    return new KeptGauge({ ...config, labelNames: [...config.labelNames, ...extraLabels] }, nowMs, source)
  }

  /** @param series called at each scrape. */
  live(name: string, series: () => Iterable<LiveSeries>): LiveGauge {
    return new LiveGauge(this.#row(name, 'gauge'), this.#registry, series)
  }

  histogram(name: string): Histogram {
    const { buckets } = this.#row(name, 'histogram')
    if (buckets === undefined) throw new Error(`the table has no buckets for ${name}`)
    return silentUntilUsed(new Histogram({ ...this.#config(name, 'histogram'), buckets: [...buckets] }))
  }

  summary(name: string): Summary {
    return silentUntilUsed(
      new Summary({ ...this.#config(name, 'summary'), ...summaryAge, percentiles: quantiles }),
    )
  }

  #config(name: string, type: MetricRow['type']) {
    const { help, labels } = this.#row(name, type)
    return { name, help, labelNames: [...labels], registers: [this.#registry] }
  }

  #row(name: string, type: MetricRow['type']): MetricRow {
    const row = this.#rows.get(name)
    if (row?.type !== type) throw new Error(`the table has no ${type} ${name}`)
    return row
  }
}

/** prom-client shows unlabelled families before their first use; Karpenter does not (operations.md 14). */
function silentUntilUsed<T extends Counter | Gauge | Histogram | Summary>(family: T): T {
  family.remove({})
  return family
}
