/** A gauge of many series, each of which belongs to an object and goes with it. */
import { Gauge, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'
import { seriesText, valueText } from './exposition.ts'

/** One series of an object. */
export interface KeptSeries {
  readonly labels: Readonly<Record<string, string>>
  /** Labels beside its own; what several series have in common is rendered once when it is one object. */
  readonly shared?: Readonly<Record<string, string>>
  /** A figure, or since when (Unix milliseconds) it grows by one each second. */
  readonly value: number | { readonly sinceMs: number }
}

interface Kept {
  readonly series: readonly KeptSeries[]
  /** What stands before the value of each, once it was asked for. */
  starts: readonly string[] | undefined
  /** All lines, if none of them grows. */
  text: string | undefined
}

/** Knows what a gauge has yet to show. */
export interface KeptSource {
  /** Brings in steps what the gauge shows up to date; asked each time before somebody looks. */
  bringUpToDate(gauge: KeptGauge): Iterable<undefined>
}

/** Of a gauge that is told everything at once. */
const nothingLeft: KeptSource = { bringUpToDate: () => [] }

/**
 * Holds the series of objects until these show others or are gone. What changes costs; what stays the same
 * is rendered once, however often it is scraped.
 */
export class KeptGauge extends Gauge {
  readonly #name: string
  readonly #nowMs: () => number
  /** By the object's name. */
  readonly #kept = new Map<string, Kept>()
  readonly #source: KeptSource

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

  /** Puts these in place of what the object showed. */
  show(owner: string, series: readonly KeptSeries[]): void {
    if (series.length === 0) this.#kept.delete(owner)
    else this.#kept.set(owner, { series, starts: undefined, text: undefined })
  }

  /** The object shows nothing any more. */
  drop(owner: string): void {
    this.#kept.delete(owner)
  }

  /** The lines of each object as they are now; what changes while this is read is not in it. */
  *texts(): Generator<string, void, undefined> {
    for (const _ of this.#source.bringUpToDate(this)) yield ''
    const nowMs = this.#nowMs()
    // A copy, so that an object that comes back while this is read is not in it twice.
    for (const kept of Array.from(this.#kept.values())) yield kept.text ?? this.#render(kept, nowMs)
  }

  #render(kept: Kept, nowMs: number): string {
    const { series } = kept
    kept.starts ??= series.map(({ labels, shared }) => seriesText(this.#name, labels, shared))
    const lines: string[] = []
    for (let at = 0; at < series.length; at++)
      lines.push(kept.starts[at] ?? '', valueText(valueAt(series[at]?.value ?? 0, nowMs)), '\n')
    // Joined, as a sum would be put together again at each scrape.
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
    // Called by the base before there is anything of this class.
    if (#kept in this) this.#kept.clear()
  }
}

function valueAt(value: KeptSeries['value'], nowMs: number): number {
  return typeof value === 'number' ? value : Math.max(0, nowMs - value.sinceMs) / 1000
}
