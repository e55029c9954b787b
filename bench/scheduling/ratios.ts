/** How much faster decisions are than those of the reference, in young processes and in warm ones. */
import { schedule, TypeReader } from '@tenon/engine'
import { diverseRow, type Improvement, inputOf } from './workloads.ts'

/** CPU time of one decision, by all threads, so that collecting garbage and compiling count, and other programs do not. */
export interface Ages {
  /** The first decision of the process. */
  readonly youngMs: number
  /** The median of the later half. */
  readonly warmMs: number
}

export interface RatioRow extends Ages {
  readonly pods: number
  readonly improvement: Improvement
}

/** Sizes between 1 and 500 have no published time: they count with the rate of one pod, the highest of all. */
const ratePerSecond = 808

/** Milliseconds that the reference takes for so many diverse pods. */
export function referenceMs(pods: number): number {
  return diverseRow(pods).reference.ms ?? (1000 * pods) / ratePerSecond
}

export function measureAges(pods: number, improvement: Improvement, runs: number): Ages {
  const workload = diverseRow(pods)
  const types = new TypeReader()
  const { pools } = inputOf(workload, improvement)
  const ms: number[] = []
  for (let run = 0; run < runs; run++) {
    // The catalogue stays, as in a controller.
    const input = { ...inputOf(workload, improvement), pools }
    const start = process.cpuUsage()
    schedule(input, { shouldStop: () => false, types })
    const { user, system } = process.cpuUsage(start)
    ms.push((user + system) / 1000)
  }
  return { youngMs: ms[0] ?? Number.NaN, warmMs: median(ms.slice(runs >> 1)) }
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** Lines of a table for bench/README.md. */
export function ratioTable(rows: readonly RatioRow[]): readonly string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const times = (pods: number, ms: number) => `${ms.toFixed(1)} ms, ${(referenceMs(pods) / ms).toFixed(0)}×`
  return [
    line(['pods', 'plan', 'reference', 'young process', 'warm process']),
    line(['---', '---', '---', '---', '---']),
    ...rows.map(({ pods, improvement, youngMs, warmMs }) =>
      line([
        String(pods),
        improvement === 'none' ? 'first fit' : improvement,
        `${referenceMs(pods).toFixed(0)} ms`,
        times(pods, youngMs),
        times(pods, warmMs),
      ]),
    ),
  ]
}
