/**
 * The whole embedded cluster in one process, without sockets: `node bench/cluster.ts [--json] [COUNT…]`.
 *
 * Creates one Deployment of COUNT pods (default 2 000, 10 000 and 20 000) on 500 Ready nodes. Every row is the
 * time from the creation of the Deployment until the last pod has reached a step, with all parts: API server,
 * controllers, scheduler and kubelets. Kubelets pull and start with short delays (below), so that the figures
 * show the cluster and not images. `CPU s` is the CPU time of the process until then, which does not depend on
 * other load; `longest` is the longest time that the event loop was blocked.
 */
import { kinds, type KubeObject, type Node, type Pod, type ResourceType } from '@tenon/api'
import { createCredentials, type KubeletSpec, startDevCluster } from '@tenon/devcluster'
import { type ExoscaleCluster, exoscaleSimulator } from '@tenon/simulator-exoscale'
import { Secret, SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'

interface Row {
  readonly workload: string
  readonly count: number
  readonly seconds: number
  readonly cpuSeconds: number
  readonly ratePerSecond: number
  readonly longestMs: number
}

interface Deployment extends KubeObject {
  readonly spec: { readonly replicas: number; readonly selector: object; readonly template: object }
  readonly status?: { readonly availableReplicas?: number }
}

const deployments: ResourceType<Deployment> = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
}
const nodeCount = 500
const pollMs = 1
const giveUpMs = 300_000
const delays = {
  readyDelay: [10, 100],
  pullDelay: [50, 200],
  startDelay: [20, 100],
  stopDelay: [20, 100],
} as const

const clock = new SystemClock()
const credentials = await createCredentials(clock.now())

function newCluster(): ExoscaleCluster {
  return startDevCluster({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    credentials,
    kubelets: delays,
    simulator: exoscaleSimulator({
      zone: 'ch-gva-2',
      clusterId: 'bench',
      key: 'bench',
      secret: new Secret('bench'),
    }),
  })
}

function kubelet(index: number): KubeletSpec {
  const nodeName = `node-${index}`
  return {
    nodeName,
    providerId: `bench://${nodeName}`,
    labels: { 'kubernetes.io/hostname': nodeName, 'topology.kubernetes.io/zone': `zone-${index % 3}` },
    taints: [],
    capacity: { cpu: '16', memory: '64Gi', pods: '110' },
    allocatable: { cpu: '16', memory: '64Gi', pods: '110' },
    addresses: [{ type: 'InternalIP', address: `10.1.${index >> 8}.${index & 255}` }],
    kubeletVersion: 'v1.34.1',
    systemUuid: nodeName,
  }
}

function deployment(replicas: number): Deployment {
  const labels = { app: 'web' }
  const resources = { requests: { cpu: '100m', memory: '128Mi' } }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web:1', resources }] } },
    },
  }
}

const isReady = ({ status }: Pod | Node): boolean =>
  status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false

/** Waits until `done`, and returns the longest time that the event loop was blocked. */
async function until(done: () => boolean): Promise<number> {
  const deadline = clock.monotonic() + giveUpMs
  let longestMs = 0
  let last = clock.monotonic()
  while (!done()) {
    await clock.sleep(pollMs)
    const now = clock.monotonic()
    longestMs = Math.max(longestMs, now - last - pollMs)
    last = now
    if (now > deadline) throw new Error('the cluster did not get there in time')
  }
  return longestMs
}

/** Counts pods by the steps they have reached; a pod counts once per step. */
function countPods(cluster: ExoscaleCluster) {
  const counts = { created: 0, bound: 0, ready: 0 }
  cluster.server.local.subscribe<Pod>(kinds.pod, {
    added: () => {
      counts.created++
    },
    updated: (pod, old) => {
      if (pod.spec.nodeName !== undefined && old.spec.nodeName === undefined) counts.bound++
      if (isReady(pod) && !isReady(old)) counts.ready++
    },
    deleted: () => {
      counts.created--
    },
  })
  return counts
}

async function run(count: number): Promise<readonly Row[]> {
  const cluster = newCluster()
  const api = cluster.server.local
  for (let index = 0; index < nodeCount; index++) cluster.kubelets.start(kubelet(index))
  await until(() => {
    const nodes = api.list(kinds.node)
    return nodes.every((node) => isReady(node) && (node.spec?.taints ?? []).length === 0)
  })
  const counts = countPods(cluster)
  const rows: Row[] = []
  let longestMs = 0
  let started = clock.monotonic()
  let cpuBefore = process.cpuUsage()
  const reach = async (workload: string, done: () => boolean): Promise<void> => {
    longestMs = Math.max(longestMs, await until(done))
    const seconds = (clock.monotonic() - started) / 1000
    const cpu = process.cpuUsage(cpuBefore)
    rows.push({
      workload,
      count,
      seconds: Number(seconds.toFixed(2)),
      cpuSeconds: Number(((cpu.user + cpu.system) / 1e6).toFixed(2)),
      ratePerSecond: Math.round(count / seconds),
      longestMs: Math.round(longestMs),
    })
  }
  const live = () => api.get(deployments, 'default', 'web')
  api.create(deployments, deployment(count))
  await reach('pods created', () => counts.created === count)
  await reach('pods bound', () => counts.bound === count)
  await reach('pods Ready', () => counts.ready === count)
  await reach('Deployment available', () => live()?.status?.availableReplicas === count)
  longestMs = 0
  started = clock.monotonic()
  cpuBefore = process.cpuUsage()
  api.patch(deployments, 'default', 'web', { spec: { replicas: 0 } })
  await reach('pods gone, scaled to 0', () => counts.created === 0)
  cluster.stop()
  return rows
}

function table(rows: readonly Row[]): string {
  const header = ['workload', 'count', 'seconds', 'CPU s', 'per s', 'longest ms']
  const cells = [header, ...rows.map((row) => Object.values(row).map(String))]
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
  return `${cells.map(line).join('\n')}\n`
}

const asked = process.argv.slice(2).map(Number).filter(Number.isInteger)
const rows: Row[] = []
for (const count of asked.length > 0 ? asked : [2000, 10_000, 20_000]) rows.push(...(await run(count)))
if (process.argv.includes('--json')) for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`)
else {
  const range = ([least, most]: readonly [number, number]): string => `${least}–${most} ms`
  process.stdout.write(
    `${nodeCount} nodes; kubelets pull in ${range(delays.pullDelay)}, start in ${range(delays.startDelay)}, stop in ${range(delays.stopDelay)}\n\n`,
  )
  process.stdout.write(table(rows))
}
