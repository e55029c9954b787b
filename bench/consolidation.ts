/**
 * The cost of consolidation on large clusters: a scan that evaluates every node by itself, and searches for
 * several nodes at once, one of them global. Each workload runs in its own process.
 */
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { problemOf, TypeReader } from '@tenon/engine'
import { examine } from '@tenon/engine/consolidation'
import { clusterOf, type ClusterShape } from './consolidation/cluster.ts'
import { measuredElsewhere } from './own-process.ts'
import { peakHeapMib } from './scheduling/heap-trace.ts'

interface Workload extends ClusterShape {
  readonly name: string
  readonly search: 'survey' | 'multi' | 'global'
  /** Upper limit in seconds, and the reference's time for the same case. */
  readonly target: string
}

const scan = { search: 'survey' } as const
const workloads: readonly Workload[] = [
  {
    name: 'scan(370)',
    nodes: 370,
    pods: 2000,
    kind: 'eightShapes',
    mostCores: 8,
    ...scan,
    target: '< 0.2 s (13 to 21 s)',
  },
  {
    name: 'multi(370)',
    nodes: 370,
    pods: 2000,
    kind: 'eightShapes',
    mostCores: 8,
    search: 'multi',
    target: '(0.55 s)',
  },
  {
    name: 'global(370)',
    nodes: 370,
    pods: 2000,
    kind: 'eightShapes',
    mostCores: 8,
    search: 'global',
    target: '',
  },
  {
    name: 'scan(1000)',
    nodes: 1000,
    pods: 20_000,
    kind: 'diverse',
    mostCores: 64,
    ...scan,
    target: '< 2 s (18 min)',
  },
  {
    name: 'multi(1000)',
    nodes: 1000,
    pods: 20_000,
    kind: 'diverse',
    mostCores: 64,
    search: 'multi',
    target: '',
  },
  {
    name: 'global(1000)',
    nodes: 1000,
    pods: 20_000,
    kind: 'diverse',
    mostCores: 64,
    search: 'global',
    target: '',
  },
  {
    name: 'scan(5000)',
    nodes: 5000,
    pods: 100_000,
    kind: 'diverse',
    mostCores: 64,
    ...scan,
    target: '< 30 s',
  },
]

const usage = `Usage: npm run bench:consolidation -- [options]

Asks the engine what could be consolidated and prints how long the answers take.

  --only NAME…   only workloads whose name contains a NAME
  --runs N       runs of each workload (default: 5, with 5000 nodes 2)
  --json         one JSON object a line
  --help         this text

Columns: nodes, pods, candidates that were decided, time of the runs, time per candidate by the median and
its growth from the scan before, peak heap, and the target with the reference's time in brackets.

Workloads: ${workloads.map(({ name }) => name).join(', ')}
`

interface Measurement {
  readonly ms: readonly number[]
  readonly pods: number
  readonly candidates: number
  readonly heapAtEndMib: number
  readonly arrayBuffersMib: number
}

const mebibyte = 1024 ** 2

function measure({ search, ...shape }: Workload, runs: number): Measurement {
  const { input, question } = clusterOf(shape)
  const types = new TypeReader()
  const ms: number[] = []
  let candidates = 0
  let memory = process.memoryUsage()
  for (let run = 0; run < runs; run++) {
    if (run === 0) setFlagsFromString('--trace-gc')
    const start = performance.now()
    const answer = examine(problemOf(input), { ...question, search }, { shouldStop: () => false, types })
    ms.push(performance.now() - start)
    if (answer.kind === 'consolidation') candidates = answer.examined
    if (run === 0) {
      setFlagsFromString('--no-trace-gc')
      memory = process.memoryUsage()
    }
  }
  return {
    ms,
    pods: input.pods.length,
    candidates,
    heapAtEndMib: (memory.heapUsed + memory.arrayBuffers) / mebibyte,
    arrayBuffersMib: memory.arrayBuffers / mebibyte,
  }
}

interface Row extends Measurement {
  readonly workload: Workload
  readonly peakHeapMib: number
  readonly sorted: readonly number[]
}

/** Measures a workload in a new process. Throws if that fails. */
async function inOwnProcess(workload: Workload, runs: number): Promise<Row> {
  const { measured: sent, output: trace } = await measuredElsewhere(workload.name, import.meta.filename, [
    '--child',
    `--only=${workload.name}`,
    `--runs=${runs}`,
  ])
  const measured = sent as Measurement
  const sorted = measured.ms.toSorted((a, b) => a - b)
  return { ...measured, workload, sorted, peakHeapMib: peakHeapMib(trace, measured) }
}

const medianOf = ({ sorted }: Row) => sorted[(sorted.length - 1) >> 1] ?? 0

function jsonOf(row: Row): string {
  const { workload, pods, candidates, sorted } = row
  const figures = [sorted[0] ?? 0, medianOf(row), sorted.at(-1) ?? 0].map((ms) => Math.round(10 * ms) / 10)
  const [msMin, msMedian, msMax] = figures
  return JSON.stringify({
    workload: workload.name,
    nodes: workload.nodes,
    pods,
    candidates,
    ms_min: msMin,
    ms_median: msMedian,
    ms_max: msMax,
    peak_heap_mib: Math.round(row.peakHeapMib),
  })
}

const header =
  'workload       nodes    pods  candidates    ms min    median       max  ms each  growth  heap MiB  target'

/** @param before the row of the next smaller scan. */
function lineOf(row: Row, before: Row | undefined): string {
  const { workload, sorted, candidates } = row
  const each = (of: Row) => medianOf(of) / Math.max(1, of.candidates)
  const growth = before === undefined ? '-' : `${(each(row) / each(before)).toFixed(1)}x`
  const ms = (value = 0) => value.toFixed(0)
  return [
    workload.name.padEnd(13),
    String(workload.nodes).padStart(6),
    String(row.pods).padStart(7),
    String(candidates).padStart(11),
    ms(sorted[0]).padStart(9),
    ms(medianOf(row)).padStart(9),
    ms(sorted.at(-1)).padStart(9),
    each(row).toFixed(2).padStart(8),
    growth.padStart(7),
    String(Math.round(row.peakHeapMib)).padStart(9),
    ` ${workload.target}`,
  ].join(' ')
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', multiple: true },
      runs: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      child: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return
  }
  if (values.runs !== undefined && !/^[1-9]\d*$/.test(values.runs))
    throw new Error(`--runs takes a positive number, not '${values.runs}'`)
  const names = [...(values.only ?? []), ...positionals]
  const unknown = names.find((name) => !workloads.some((each) => each.name.includes(name)))
  if (unknown !== undefined) throw new Error(`no workload has '${unknown}' in its name; --help lists them`)
  const selected = workloads.filter(
    ({ name }) => names.length === 0 || names.some((part) => name.includes(part)),
  )
  const runsOf = ({ nodes }: Workload) => Number(values.runs ?? (nodes >= 5000 ? 2 : 5))
  const [only] = selected
  if (values.child && only !== undefined) {
    process.send?.(measure(only, runsOf(only)))
    return
  }
  if (!values.json) console.log(header)
  let before: Row | undefined
  for (const [i, workload] of selected.entries()) {
    console.error(`[${i + 1}/${selected.length}] ${workload.name}, ${runsOf(workload)} runs`)
    const row = await inOwnProcess(workload, runsOf(workload))
    console.log(values.json ? jsonOf(row) : lineOf(row, workload.search === 'survey' ? before : undefined))
    if (workload.search === 'survey') before = row
  }
}

try {
  await main()
} catch (error) {
  console.error(`bench:consolidation: ${(error as Error).message}`)
  process.exitCode = 1
}
