/** Gauges that are worked out when somebody looks, instead of being kept up to date all the time. */
import { Gauge, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'
import { type Sample, sampleText } from './exposition.ts'
import type { MetricRow } from './rows.ts'

/** One series of a gauge: its labels and its value now. */
export type LiveSeries = Sample

/** A gauge whose series are those that `series` names at the moment of a scrape; others are gone. */
export class LiveGauge extends Gauge {
  readonly #name: string
  readonly #series: () => Iterable<LiveSeries>

  constructor(row: MetricRow, registry: Registry, series: () => Iterable<LiveSeries>) {
    const { name, help, labels } = row
    super({ name, help, labelNames: [...labels], registers: [registry] })
    this.#name = name
    this.#series = series
  }

  /** Line by line, so that a long scrape can pause between two of them. */
  *texts(): Generator<string, void, undefined> {
    for (const series of this.#series()) yield sampleText(this.#name, series)
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const metric = await super.get()
    const values = Array.from(this.#series(), ({ labels, shared, value }) => ({
      labels: { ...labels, ...shared },
      value,
    }))
    return { ...metric, values }
  }
}
