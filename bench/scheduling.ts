/**
 * Scheduling throughput and price of the engine alone: the workloads of scheduling/workloads.ts, each in its
 * own process, compared with figures of the reference and the lowest possible price.
 */
import { parseArgs } from 'node:util'
import { measuredElsewhere } from './own-process.ts'
import { peakHeapMib } from './scheduling/heap-trace.ts'
import { type Measurement, measure } from './scheduling/measure.ts'
import { header, jsonRow, type Row, renderRow } from './scheduling/table.ts'
import { type Improvement, type Workload, workloads } from './scheduling/workloads.ts'

const improvements: readonly Improvement[] = ['none', 'planned', 'free']

const usage = `Usage: npm run bench:scheduling -- [options]

Schedules workloads with the engine alone and prints a table; progress goes to standard error.

  --only NAME…         only workloads whose name contains a NAME
  --runs N             runs of each workload (default: 75 up to 500 pods, 25, from 10000 on 3)
  --improvement KIND   none, planned or free, for rows that do not name theirs (default: none)
  --json               one JSON object a line
  --help               this text

Columns: time of the runs, pods per second and times the reference's rate (by the median), nodes and
the reference's, price per hour, it over the reference's and over the lower bound, peak heap, pods
left without a place.

Workloads: ${workloads.map(({ name }) => name).join(', ')}
`

interface Options {
  readonly selected: readonly Workload[]
  readonly runs: number | undefined
  readonly improvement: Improvement
  readonly json: boolean
  /** Measures in this process and sends the figures to the parent. */
  readonly isChild: boolean
}

/** A usage error, in one line. */
class UsageError extends Error {}

function parse(args: readonly string[]): Options | 'help' {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      only: { type: 'string', multiple: true },
      runs: { type: 'string' },
      improvement: { type: 'string', default: 'none' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      child: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const only = values.only ?? []
  if (only.length === 0 && positionals.length > 0) {
    throw new UsageError(`unexpected '${positionals[0]}'; names come after --only`)
  }
  if (values.runs !== undefined && !/^[1-9]\d*$/.test(values.runs)) {
    throw new UsageError(`--runs takes a positive number, not '${values.runs}'`)
  }
  const improvement = improvements.find((each) => each === values.improvement)
  if (improvement === undefined) {
    throw new UsageError(`--improvement is ${improvements.join(', ')}, not '${values.improvement}'`)
  }
  return {
    selected: select([...only, ...positionals]),
    runs: values.runs === undefined ? undefined : Number(values.runs),
    improvement,
    json: values.json,
    isChild: values.child,
  }
}

function select(names: readonly string[]): readonly Workload[] {
  for (const part of names) {
    if (!workloads.some(({ name }) => name.includes(part))) {
      throw new UsageError(`no workload has '${part}' in its name; --help lists them`)
    }
  }
  if (names.length === 0) return workloads
  return workloads.filter(({ name }) => names.some((part) => name.includes(part)))
}

/** Measures a workload in a new process. Throws if that fails. */
async function inOwnProcess(workload: Workload, improvement: Improvement, runs: number): Promise<Row> {
  const { measured: sent, output: trace } = await measuredElsewhere(workload.name, import.meta.filename, [
    '--child',
    `--only=${workload.name}`,
    `--improvement=${improvement}`,
    `--runs=${runs}`,
  ])
  const measured = sent as Measurement
  const sorted = measured.ms.toSorted((a, b) => a - b)
  const at = (index: number) => sorted[index] as number
  return {
    workload,
    improvement,
    ms: { min: at(0), median: at((sorted.length - 1) >> 1), max: at(sorted.length - 1) },
    nodes: measured.nodes,
    unplaced: measured.unplaced,
    price: measured.price,
    bound: measured.bound,
    peakHeapMib: peakHeapMib(trace, measured),
  }
}

/**
 * As many runs as take some seconds per workload. The first, slow runs are warm-up, which the maximum shows; a
 * controller keeps running.
 */
function defaultRuns(pods: number): number {
  if (pods >= 10_000) return 3
  return pods > 500 ? 25 : 75
}

/** Prints row after row; a workload that fails is reported and makes the exit code 1. */
async function main({ selected, runs, improvement, json }: Options): Promise<void> {
  if (!json) console.log(header)
  for (const [i, workload] of selected.entries()) {
    const count = runs ?? defaultRuns(workload.pods)
    console.error(`[${i + 1}/${selected.length}] ${workload.name}, ${count} runs`)
    try {
      const row = await inOwnProcess(workload, workload.improvement ?? improvement, count)
      console.log(json ? jsonRow(row) : renderRow(row))
    } catch (error) {
      console.error(`bench:scheduling: ${(error as Error).message}`)
      process.exitCode = 1
    }
  }
}

try {
  const options = parse(process.argv.slice(2))
  if (options === 'help') console.log(usage)
  else if (options.isChild) {
    const [workload] = options.selected
    if (workload) process.send?.(await measure(workload, options.improvement, options.runs ?? 1))
  } else await main(options)
} catch (error) {
  const isUsage =
    error instanceof UsageError || String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS')
  if (!isUsage) throw error
  console.error(`bench:scheduling: ${(error as Error).message}`)
  process.exitCode = 1
}
