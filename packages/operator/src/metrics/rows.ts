/** Description of a metric family, for code, reference page and dashboards. */
export interface MetricRow {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly labels: readonly string[]
  readonly help: string
  /** Unit of the value: `seconds`, `nodes` …; `1` for a mere indicator. */
  readonly unit: string
  /** Upper bounds of a histogram, in its unit. */
  readonly buckets?: readonly number[]
  /** Also has the labels of a node, which depend on the provider ({@link nodeLabelNames}). */
  readonly hasNodeLabels?: true
  /** One series for each of these; left out with reduced detail. */
  readonly grows?: 'with the pods' | 'with the nodes'
}

/** Durations of operations, in seconds (operations.md 9, "DB"). */
export const durationBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
]
/** Durations of calls, in seconds (operations.md 9, "PB"). */
export const callBuckets: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const minute = 60
const hour = 60 * minute
/** Minutes to a month, in seconds. */
export const lifetimeBuckets: readonly number[] = [
  ...[15, 30, 45].map((n) => n * minute),
  ...[1, 2, 4, 6, 8, 10, 12, 16, 20].map((n) => n * hour),
  ...[1, 2, 3, 5, 10, 15, 20, 25, 30].map((n) => n * 24 * hour),
]
/** 1, 2, 4 … 2^`exponent`. */
export function powersOfTwo(exponent: number): readonly number[] {
  return Array.from({ length: exponent + 1 }, (_, n) => 2 ** n)
}

/** Adds a prefix to all names. */
export function prefixed(prefix: string, rows: readonly MetricRow[]): readonly MetricRow[] {
  return rows.map((row) => ({ ...row, name: `${prefix}${row.name}` }))
}
