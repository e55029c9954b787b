/** Gauges with many series: kept up to date by object, or computed at each scrape. */
import { Gauge, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'
import { type Sample, sampleText, seriesText, valueText } from './exposition.ts'
import type { MetricRow } from './rows.ts'

/** One series of an object. */
export interface KeptSeries {
  readonly labels: Readonly<Record<string, string>>
  /** Labels in common with other series; rendered once for the same object. */
  readonly shared?: Readonly<Record<string, string>>
  /** A number, or the start (Unix milliseconds) of an age in seconds. */
  readonly value: number | { readonly sinceMs: number }
}

interface Kept {
  readonly series: readonly KeptSeries[]
  /** Name and labels of each line, once rendered. */
  starts: readonly string[] | undefined
  /** All lines, if none is an age. */
  text: string | undefined
}

export interface KeptSource {
  /** Updates the gauge in steps; called before each scrape. */
  bringUpToDate(gauge: KeptGauge): Iterable<undefined>
}

const nothingLeft: KeptSource = { bringUpToDate: () => [] }

/**
 * Series of objects, rendered only once until they change, however often they are scraped.
 */
export class KeptGauge extends Gauge {
  readonly #name: string
  readonly #nowMs: () => number
  /** By the object's name. */
  readonly #kept = new Map<string, Kept>()
  readonly #source: KeptSource
  #isClosed = false

  constructor(
    config: {
      readonly name: string
      readonly help: string
      readonly labelNames: readonly string[]
      readonly registers: Registry[]
    },
    nowMs: () => number,
    source: KeptSource = nothingLeft,
  ) {
    super({ ...config, labelNames: [...config.labelNames] })
    this.#name = config.name
    this.#nowMs = nowMs
    this.#source = source
  }

  /** Replaces the series of an object. */
  show(owner: string, series: readonly KeptSeries[]): void {
    if (this.#isClosed) return
    if (series.length === 0) this.#kept.delete(owner)
    else this.#kept.set(owner, { series, starts: undefined, text: undefined })
  }

  drop(owner: string): void {
    this.#kept.delete(owner)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Lets go of all series; from now on it keeps none. */
  close(): void {
    this.#isClosed = true
    this.#kept.clear()
  }

  /** Lines by object; changes during the iteration are not included. */
  *texts(): Generator<string, void, undefined> {
    for (const _ of this.#source.bringUpToDate(this)) yield ''
    const nowMs = this.#nowMs()
    // A copy: an object that is recreated during the iteration would appear twice.
    for (const kept of Array.from(this.#kept.values())) yield kept.text ?? this.#render(kept, nowMs)
  }

  #render(kept: Kept, nowMs: number): string {
    const { series } = kept
    kept.starts ??= series.map(({ labels, shared }) => seriesText(this.#name, labels, shared))
    const lines: string[] = []
    for (let at = 0; at < series.length; at++)
      lines.push(kept.starts[at] ?? '', valueText(valueAt(series[at]?.value ?? 0, nowMs)), '\n')
    // Joined to a flat string: a rope would be flattened at each scrape.
    const text = lines.join('')
    if (series.every(({ value }) => typeof value === 'number')) {
      kept.text = text
      kept.starts = undefined
    }
    return text
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const metric = await super.get()
    for (const _ of this.#source.bringUpToDate(this));
    const nowMs = this.#nowMs()
    const values = [...this.#kept.values()].flatMap(({ series }) =>
      series.map(({ labels, shared, value }) => ({
        labels: { ...labels, ...shared },
        value: valueAt(value, nowMs),
      })),
    )
    return { ...metric, values }
  }

  override reset(): void {
    super.reset()
    // The base constructor calls this before the fields exist.
    if (#kept in this) this.#kept.clear()
  }
}

function valueAt(value: KeptSeries['value'], nowMs: number): number {
  return typeof value === 'number' ? value : Math.max(0, nowMs - value.sinceMs) / 1000
}

export type LiveSeries = Sample

/** A gauge whose series are computed at each scrape. */
export class LiveGauge extends Gauge {
  readonly #name: string
  readonly #series: () => Iterable<LiveSeries>

  constructor(row: MetricRow, registry: Registry, series: () => Iterable<LiveSeries>) {
    const { name, help, labels } = row
    super({ name, help, labelNames: [...labels], registers: [registry] })
    this.#name = name
    this.#series = series
  }

  /** Line by line, so that a long scrape can yield in between. */
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
