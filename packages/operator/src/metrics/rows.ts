/** What a family of series is, for code, reference page and dashboards alike. */
export interface MetricRow {
  /** In full, as scraped. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  /** In the order in which they are shown. */
  readonly labels: readonly string[]
  readonly help: string
  /** What a value counts: `seconds`, `nodes` …; `1` for a figure that only says that there is something. */
  readonly unit: string
  /** Upper bounds of a histogram, in its unit. */
  readonly buckets?: readonly number[]
  /** Has the labels of a node too, which depend on the provider ({@link nodeLabelNames}). */
  readonly hasNodeLabels?: true
  /** There is a series for each of these; left out where there may be any number. */
  readonly grows?: 'with the pods' | 'with the nodes'
}

/** For how long something took. Upper bounds in seconds (operations.md 9, "DB"). */
export const durationBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
]
/** For calls. Upper bounds in seconds (operations.md 9, "PB"). */
export const callBuckets: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const minute = 60
const hour = 60 * minute
/** From minutes to a month. Upper bounds in seconds. */
export const lifetimeBuckets: readonly number[] = [
  ...[15, 30, 45].map((n) => n * minute),
  ...[1, 2, 4, 6, 8, 10, 12, 16, 20].map((n) => n * hour),
  ...[1, 2, 3, 5, 10, 15, 20, 25, 30].map((n) => n * 24 * hour),
]
/** 1, 2, 4 … 2^`exponent`. */
export function powersOfTwo(exponent: number): readonly number[] {
  return Array.from({ length: exponent + 1 }, (_, n) => 2 ** n)
}

/** Rows of one type whose names share a prefix. */
export function prefixed(prefix: string, rows: readonly MetricRow[]): readonly MetricRow[] {
  return rows.map((row) => ({ ...row, name: `${prefix}${row.name}` }))
}
