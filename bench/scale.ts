/**
 * How the cost of a large cluster grows (SCA-1): `bench/state.ts` for each size, each with processes of its own, and
 * the exponent of each figure between one size and the next: 1 means that it grows with the number of nodes, 0 that it
 * does not grow.
 *
 *   npm run bench:scale -- [--nodes 1000,2000,…] [--pods-per-node N] [--seconds S] [--heap MIB]
 *
 * The last lines are rows for bench/README.md. On a busy host only memory, CPU time and counts mean anything.
 */
import { execFile } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { benchArguments } from './arguments.ts'

/** What a line of `bench/state.ts --json` says. */
interface Measured {
  readonly nodes: number
  readonly pods: number
  readonly podBytes: number
  readonly [figure: string]: number
}

interface Figure {
  readonly name: string
  readonly of: (measured: Measured) => number
  /** Whether a busy host changes it. */
  readonly isWallTime?: true
}

const figure = (name: string, key: string, more: { readonly isWallTime?: true } = {}): Figure => ({
  name,
  of: (measured) => Number(measured[key]),
  ...more,
})
const wallTime = { isWallTime: true } as const

const figures: readonly Figure[] = [
  figure('CPU until synced, s', 'syncCpuSeconds'),
  figure('time until synced, s', 'syncedSeconds', wallTime),
  figure('RSS at rest, MiB', 'rssMiB'),
  figure('RSS at most, MiB', 'peakRssMiB'),
  figure('loop held until synced, ms', 'syncHeldMs', wallTime),
  figure('loop held under change, ms', 'busyHeldMs', wallTime),
  figure('CPU at rest, %', 'restPercent'),
  figure('requests at rest, a second', 'restRequests'),
  figure('writes at rest', 'restWrites'),
  figure('CPU under change, %', 'busyPercent'),
  figure('writes under change', 'busyWrites'),
  figure('CPU of a standby under change, %', 'statePercent'),
  figure('pod until NodeClaim, under change, median, ms', 'launchP50Ms', wallTime),
  figure('pod until NodeClaim, under change, the slowest of ten, ms', 'launchMaxMs', wallTime),
  figure('scrape, s', 'scrapeSeconds', wallTime),
  figure('lines of a scrape', 'scrapeLines'),
]

const values = benchArguments('scale', 'How the cost of following a large cluster grows with its size.', {
  nodes: { type: 'string', default: '1000,2000,5000,10000,15000', help: 'sizes, smallest first' },
  'pods-per-node': { type: 'string', default: '20', help: 'pods on each node' },
  seconds: { type: 'string', default: '30', help: 'how long each cluster is at rest, and busy' },
  heap: { type: 'string', help: 'heap limit of the controller in MiB' },
})
const sizes = values.nodes.split(',').map(Number)
const podsPerNode = Number(values['pods-per-node'])
if (![podsPerNode, ...sizes].every((each) => each > 0)) {
  console.error('scale: --nodes takes numbers separated by commas, --pods-per-node a number')
  process.exit(1)
}

const measured: Measured[] = []
for (const nodes of sizes) {
  console.error(`measuring ${nodes} nodes with ${nodes * podsPerNode} pods`)
  try {
    measured.push(await measure(nodes))
  } catch (error) {
    // What smaller sizes took an hour to show is printed all the same.
    console.error(error)
    process.exitCode = 1
    break
  }
}
const heads = measured.map(({ nodes, pods }) => `${nodes} / ${pods}`)
console.log(
  `${cpus().length} cores, pods of ${measured[0]?.podBytes} bytes, ${new Date().toISOString().slice(0, 10)}`,
)
console.log(row(['nodes / pods', ...heads, 'exponents']))
console.log(row(Array.from({ length: heads.length + 2 }, () => '---')))
for (const { name, of, isWallTime } of figures) {
  const points = measured.map(of)
  const shown = points.map((value) => value.toFixed(value < 10 ? 1 : 0))
  console.log(row([isWallTime ? `${name} (wall time)` : name, ...shown, exponentsOf(points).join(', ')]))
}

async function measure(nodes: number): Promise<Measured> {
  const args = ['--json', `--nodes=${nodes}`, `--pods=${nodes * podsPerNode}`, `--seconds=${values.seconds}`]
  if (values.heap !== undefined) args.push(`--heap=${values.heap}`)
  const script = fileURLToPath(new URL('state.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args])
  return JSON.parse(stdout) as Measured
}

/** Growth between one size and the next; `-` where a figure is 0. */
function exponentsOf(points: readonly number[]): readonly string[] {
  return points.slice(1).map((value, at) => {
    const [before = 0, from = 1, to = 1] = [points[at], sizes[at], sizes[at + 1]]
    return before <= 0 || value <= 0 ? '-' : (Math.log(value / before) / Math.log(to / from)).toFixed(2)
  })
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}
