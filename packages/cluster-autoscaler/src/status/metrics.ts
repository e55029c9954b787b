/** Metrics registry (cluster-autoscaler.md 7.3). */
import { ownValue } from '@tenon/api'
import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client'
import type { MetricLabels, MetricSink } from '../model.ts'
import {
  type CounterDefinition,
  counters,
  draMismatches,
  durationSummary,
  gauges,
  groupGauges,
  histograms,
  metricPrefix,
} from './metric-definitions.ts'

export interface MetricsOptions {
  /** `--emit-per-nodegroup-metrics`. */
  readonly emitPerNodeGroup: boolean
}

export interface AutoscalerMetrics extends MetricSink {
  readonly registry: Registry
}

interface Labelled<M> {
  readonly metric: M
  readonly labels: readonly string[]
}

const summaryAgeSeconds = 3600

/** Metrics in their own registry. A missing label is empty. */
export function createMetrics({ emitPerNodeGroup }: MetricsOptions): AutoscalerMetrics {
  const registry = new Registry()
  const registers = [registry]
  const made = <M>(
    definitions: Readonly<Record<string, { readonly help: string; readonly labels?: readonly string[] }>>,
    make: (name: string, config: Config) => M,
  ): ReadonlyMap<string, Labelled<M>> =>
    new Map(
      Object.entries(definitions).map(([name, { help, labels = [] }]) => [
        name,
        {
          labels,
          metric: make(name, { name: metricPrefix + name, help, labelNames: [...labels], registers }),
        },
      ]),
    )
  const shownGauges = Object.fromEntries(
    Object.entries(gauges).filter(([name]) => emitPerNodeGroup || !groupGauges.has(name)),
  )
  const gaugeOf = made(shownGauges, (_, config) => new Gauge(config))
  const counterOf = made(counters, (_, config) => new Counter(config))
  const histogramOf = made(
    histograms,
    (name, config) => new Histogram({ ...config, buckets: [...(ownValue(histograms, name)?.buckets ?? [])] }),
  )
  const summary = new Summary({
    ...familyOf(durationSummary, registers),
    percentiles: [...durationSummary.percentiles],
    maxAgeSeconds: summaryAgeSeconds,
    ageBuckets: 5,
  })
  registry.registerMetric(new Gauge(familyOf(draMismatches, [])))
  for (const [name, definition] of Object.entries(counters)) begin(counterOf.get(name)?.metric, definition)
  return {
    registry,
    set: (name, value, labels) => {
      const { metric, labels: known = [] } = gaugeOf.get(name) ?? {}
      metric?.set(full(known, labels), value)
    },
    clear: (name) => {
      gaugeOf.get(name)?.metric.reset()
    },
    add: (name, by, labels) => {
      const { metric, labels: known = [] } = counterOf.get(name) ?? {}
      metric?.inc(full(known, labels), by)
    },
    observe: (name, value, labels) => {
      const { metric, labels: known = [] } = histogramOf.get(name) ?? {}
      metric?.observe(full(known, labels), value)
      if (name === 'function_duration_seconds') summary.observe(full(durationSummary.labels, labels), value)
    },
  }
}

interface Config {
  readonly name: string
  readonly help: string
  readonly labelNames: string[]
  readonly registers: Registry[]
}

function familyOf(
  {
    name,
    help,
    labels,
  }: { readonly name: string; readonly help: string; readonly labels: readonly string[] },
  registers: Registry[],
): Config {
  return { name: metricPrefix + name, help, labelNames: [...labels], registers }
}

function begin(counter: Counter | undefined, { labels = [], initial = [] }: CounterDefinition): void {
  for (const values of initial)
    counter?.inc(Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ''])), 0)
}

function full(known: readonly string[], given: MetricLabels = {}): Record<string, string> {
  return Object.fromEntries(known.map((label) => [label, ownValue(given, label) ?? '']))
}
