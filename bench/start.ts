/**
 * Time of the bundle from its start to its first reconcile: `node bench/start.ts [--json] [--runs N]`.
 *
 * Bundles into a temporary folder, runs the embedded cluster from there, and repeatedly (default 5 times)
 * starts a controller of each provider: as in a pod (without a compile cache), and with a compile cache. The
 * first reconcile is complete when a new NodePool has its hash. CPU time is that of the controller's process
 * until then, which does not depend on other load; the median of the runs is printed. Fails if a controller in
 * a pod takes more than 1.5 s of CPU time.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SystemClock } from '@tenon/runtime'
import { Cluster, until } from '../conformance/suite/cluster.ts'
import { benchArguments } from './arguments.ts'

const processorLimitMs = 1500
const pollMs = 5
const hash = 'karpenter.sh/nodepool-hash'
const providers = {
  exoscale: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'standard' },
  kwok: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'standard' },
} as const

interface Figures {
  readonly wallMs: number
  readonly userMs: number
  readonly systemMs: number
}

const values = benchArguments('start', 'How long the bundle takes from its start to its first reconcile.', {
  json: { type: 'boolean', help: 'one JSON document' },
  runs: { type: 'string', default: '5', help: 'starts of each provider' },
})
const clock = new SystemClock()
const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'tenon-start-'))
const program = join(folder, 'dist/tenon.mjs')
const kubeconfig = join(folder, '.tenon/kubeconfig')
const environment = { PATH: process.env['PATH'] ?? '', HOME: folder }
let pools = 0

execFileSync(process.execPath, [join(root, 'build/bundle.ts'), '--outdir', join(folder, 'dist')], {
  stdio: 'ignore',
})
const server = run(['devcluster', '--port', '0', '--api-port', '0'], {})
try {
  await until('the embedded cluster is up', 60, async () => /^simulated Exoscale /m.test(server.said()))
  execFileSync(process.execPath, [program, 'crds', 'apply', '--kubeconfig', kubeconfig], { env: environment })
  const cluster = new Cluster(kubeconfig)
  for (const [name, { group, kind }] of Object.entries(providers)) {
    const apiVersion = `${group}/${name === 'kwok' ? 'v1alpha1' : 'v1'}`
    const spec = name === 'kwok' ? {} : { imageTemplateSelector: {}, diskSize: 50 }
    await cluster.create({ apiVersion, kind, metadata: { name: 'standard' }, spec })
  }
  const rows = []
  for (const provider of ['exoscale', 'kwok'] as const)
    for (const compiled of ['nothing', 'kept'] as const) {
      const keeps =
        compiled === 'kept' ? { NODE_COMPILE_CACHE: join(folder, 'compiled') } : { TMPDIR: '/dev/null' }
      if (compiled === 'kept') await started(cluster, provider, keeps)
      const runs: Figures[] = []
      for (let each = 0; each < Number(values.runs); each++)
        runs.push(await started(cluster, provider, keeps))
      rows.push({ provider, compiled, ...middle(runs) })
    }
  process.stdout.write(values.json ? `${JSON.stringify(rows)}\n` : table(rows))
  const slow = rows.some(
    ({ compiled, userMs, systemMs }) => compiled === 'nothing' && userMs + systemMs > processorLimitMs,
  )
  process.exitCode = slow ? 1 : 0
} finally {
  await server.end()
  rmSync(folder, { recursive: true, force: true })
}

/** Starts a controller, and stops it after its first reconcile. */
async function started(
  cluster: Cluster,
  provider: keyof typeof providers,
  more: Readonly<Record<string, string>>,
): Promise<Figures> {
  const name = `start-${pools++}`
  const header = { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', metadata: { name } }
  const template = { spec: { nodeClassRef: providers[provider], requirements: [] } }
  await cluster.create({ ...header, spec: { template } })
  const settings = readFileSync(join(folder, '.tenon/controller.env'), 'utf8').trim().split('\n')
  const start = clock.monotonic()
  const controller = run(
    [
      'controller',
      `--provider=${provider}`,
      '--disable-leader-election',
      '--metrics-port=0',
      '--health-probe-port=0',
    ],
    {
      ...Object.fromEntries(settings.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string])),
      ...more,
    },
  )
  try {
    for (;;) {
      const pool = await cluster.get(header.apiVersion, header.kind, name)
      if (pool?.metadata?.annotations?.[hash] !== undefined) break
      if (controller.hasEnded()) throw new Error(`the controller ended: ${controller.said()}`)
      if (clock.monotonic() - start > 60_000) throw new Error(`no reconcile: ${controller.said()}`)
      await clock.sleep(pollMs)
    }
    return { wallMs: Math.round(clock.monotonic() - start), ...processorTime(controller.pid) }
  } finally {
    await controller.end()
    await cluster.delete(header.apiVersion, header.kind, name)
  }
}

function run(args: readonly string[], more: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...environment, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
  })
  return {
    pid: child.pid,
    said: () => said,
    hasEnded: () => child.exitCode !== null,
    end: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** CPU time of a process so far, in steps of 10 ms. */
function processorTime(pid: number | undefined): Pick<Figures, 'userMs' | 'systemMs'> {
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .split(' ')
    .slice(13, 15)
    .map(Number)
  return { userMs: user * 10, systemMs: system * 10 }
}

/** The median of each figure. */
function middle(runs: readonly Figures[]): Figures {
  const of = (key: keyof Figures) =>
    runs.map((each) => each[key]).toSorted((a, b) => a - b)[Math.floor(runs.length / 2)] ?? 0
  return { wallMs: of('wallMs'), userMs: of('userMs'), systemMs: of('systemMs') }
}

function table(
  rows: readonly ({ readonly provider: string; readonly compiled: string } & Figures)[],
): string {
  const line = (cells: readonly (string | number)[]) =>
    cells.map((cell) => String(cell).padStart(12)).join('')
  return `${[
    line(['provider', 'compiled', 'wall ms', 'user ms', 'system ms', 'processor']),
    ...rows.map(({ provider, compiled, wallMs, userMs, systemMs }) =>
      line([provider, compiled, wallMs, userMs, systemMs, userMs + systemMs]),
    ),
  ].join('\n')}\n`
}
