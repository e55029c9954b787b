/** Prints rows: columns for people, one JSON object per line for programs. */
import type { Improvement, Workload } from './workloads.ts'

/** One measured workload. */
export interface Row {
  readonly workload: Workload
  readonly improvement: Improvement
  readonly ms: { readonly min: number; readonly median: number; readonly max: number }
  readonly nodes: number
  readonly unplaced: number
  /** Per hour; so is the bound, the lowest possible price of the same pods. */
  readonly price: number
  readonly bound: number
  readonly peakHeapMib: number
}

interface Column {
  readonly title: string
  readonly width: number
  readonly cell: (row: Row) => string
}

const podsPerSecond = ({ workload, ms }: Row) => (1000 * workload.pods) / ms.median
const priceRatio = ({ price, bound }: Row) => (bound > 0 ? price / bound : undefined)
const milliseconds = (ms: number) => ms.toFixed(ms < 100 ? 1 : 0)
const orDash = (value: number | undefined, digits: number) => value?.toFixed(digits) ?? '-'

/** Ratio of two figures; undefined if one is missing. */
const over = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? undefined : a / b

const columns: readonly Column[] = [
  { title: 'pods', width: 6, cell: ({ workload }) => String(workload.pods) },
  { title: 'ms min', width: 8, cell: ({ ms }) => milliseconds(ms.min) },
  { title: 'median', width: 8, cell: ({ ms }) => milliseconds(ms.median) },
  { title: 'max', width: 8, cell: ({ ms }) => milliseconds(ms.max) },
  { title: 'pods/s', width: 8, cell: (row) => podsPerSecond(row).toFixed(0) },
  // Speed relative to the reference.
  { title: '× ref', width: 6, cell: ({ workload, ms }) => orDash(over(workload.reference.ms, ms.median), 1) },
  { title: 'nodes', width: 6, cell: ({ nodes }) => String(nodes) },
  { title: 'ref', width: 5, cell: ({ workload }) => orDash(workload.reference.nodes, 0) },
  { title: 'price/h', width: 9, cell: ({ price }) => price.toFixed(2) },
  // Price relative to the reference's, then to the lower bound.
  {
    title: '/ ref',
    width: 6,
    cell: ({ workload, price }) => orDash(over(price, workload.reference.price), 3),
  },
  { title: '/ bound', width: 7, cell: (row) => orDash(priceRatio(row), 3) },
  { title: 'heap MiB', width: 8, cell: ({ peakHeapMib }) => peakHeapMib.toFixed(0) },
  { title: 'unplaced', width: 8, cell: ({ unplaced }) => String(unplaced) },
]

const nameWidth = 28

export const header: string = line(
  'workload',
  columns.map(({ title }) => title),
)

/** The row as columns of the {@link header}. */
export function renderRow(row: Row): string {
  return line(
    row.workload.name,
    columns.map(({ cell }) => cell(row)),
  )
}

function line(name: string, cells: readonly string[]): string {
  return [
    name.padEnd(nameWidth),
    ...cells.map((cell, i) => cell.padStart((columns[i] as Column).width)),
  ].join(' ')
}

/** The row as a JSON object. */
export function jsonRow(row: Row): string {
  const { workload, improvement, ms } = row
  const rounded = (value: number, digits: number) => Number(value.toFixed(digits))
  const ratio = priceRatio(row)
  return JSON.stringify({
    workload: workload.name,
    pods: workload.pods,
    policy: improvement === 'none' ? workload.preferences : `${workload.preferences}/${improvement}`,
    ms_min: rounded(ms.min, 2),
    ms_median: rounded(ms.median, 2),
    ms_max: rounded(ms.max, 2),
    pods_per_s: rounded(podsPerSecond(row), 0),
    nodes: row.nodes,
    price: rounded(row.price, 4),
    price_ratio_to_bound: ratio === undefined ? null : rounded(ratio, 4),
    peak_heap_mib: rounded(row.peakHeapMib, 1),
  })
}
