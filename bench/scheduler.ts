/**
 * How fast the embedded scheduler binds pods: `node bench/scheduler.ts [--json]`.
 *
 * All pods exist before the scheduler starts; time counts until the last one is bound or rejected and includes
 * the API server. `longest` is the longest time that the event loop was blocked.
 */
import { kinds, type Node, type Pod, type PodSpec } from '@tenon/api'
import { SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import { createTestApiServer } from '../packages/devcluster/src/apiserver/api-server.test-support.ts'
import type { LocalApi } from '../packages/devcluster/src/contract.ts'
import { startScheduler } from '../packages/devcluster/src/scheduler/scheduler.ts'

interface Scenario {
  readonly name: string
  readonly pods: number
  readonly nodes: number
  readonly cpu?: string
  readonly rules?: (app: string) => Partial<PodSpec>
}

interface Result {
  readonly scenario: string
  readonly pods: number
  readonly nodes: number
  readonly bound: number
  readonly seconds: number
  readonly cpuSeconds: number
  readonly podsPerSecond: number
  readonly longestMs: number
}

const zoneKey = 'topology.kubernetes.io/zone'
const hostKey = 'kubernetes.io/hostname'
const apps = 20

const scenarios: readonly Scenario[] = [
  { name: 'simple', pods: 10_000, nodes: 500 },
  { name: 'simple', pods: 20_000, nodes: 1000 },
  { name: 'simple', pods: 10_000, nodes: 5000 },
  { name: 'zone spread', pods: 10_000, nodes: 500, rules: (app) => spread(app, 'DoNotSchedule', [zoneKey]) },
  {
    name: 'soft spread',
    pods: 10_000,
    nodes: 500,
    rules: (app) => spread(app, 'ScheduleAnyway', [zoneKey, hostKey]),
  },
  { name: 'anti-affinity', pods: 8000, nodes: 500, rules: antiAffinity },
  { name: 'unschedulable', pods: 10_000, nodes: 500, cpu: '100' },
]

function spread(
  app: string,
  whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway',
  keys: readonly string[],
): Partial<PodSpec> {
  const labelSelector = { matchLabels: { app } }
  return {
    topologySpreadConstraints: keys.map((topologyKey) => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable,
      labelSelector,
    })),
  }
}

function antiAffinity(app: string): Partial<PodSpec> {
  const term = { topologyKey: hostKey, labelSelector: { matchLabels: { app } } }
  return { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }
}

function fill(api: LocalApi, { pods, nodes, cpu = '100m', rules }: Scenario): void {
  for (let index = 0; index < nodes; index++) {
    const name = `node-${index}`
    const node: Node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { [hostKey]: name, [zoneKey]: `zone-${index % 3}` } },
      status: { allocatable: { cpu: '16', memory: '64Gi', pods: '110' } },
    }
    api.create(kinds.node, node)
    api.patch(kinds.node, undefined, name, { spec: { taints: null } })
  }
  for (let index = 0; index < pods; index++) {
    const app = `app-${index % apps}`
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `pod-${index}`, namespace: 'default', labels: { app } },
      spec: {
        containers: [{ name: 'main', image: 'app', resources: { requests: { cpu, memory: '128Mi' } } }],
        ...rules?.(app),
      },
    }
    api.create(kinds.pod, pod)
  }
}

async function run(scenario: Scenario): Promise<Result> {
  const clock = new SystemClock()
  const random = new SeededRandom(1)
  const server = createTestApiServer({ clock, random })
  const api = server.local
  fill(api, scenario)
  await clock.sleep(0)
  let bound = 0
  let refused = 0
  const unsubscribe = api.subscribe<Pod>(kinds.pod, {
    updated: (pod, old) => {
      if (pod.spec.nodeName !== undefined && old.spec.nodeName === undefined) bound++
      else if (pod.spec.nodeName === undefined && old.status?.conditions === undefined) refused++
    },
  })
  const started = clock.monotonic()
  const cpuBefore = process.cpuUsage()
  const scheduler = startScheduler({ api, clock, random, logger: silentLogger })
  let longestMs = 0
  let last = clock.monotonic()
  while (bound + refused < scenario.pods) {
    await clock.sleep(1)
    longestMs = Math.max(longestMs, clock.monotonic() - last)
    last = clock.monotonic()
  }
  const seconds = (clock.monotonic() - started) / 1000
  const cpu = process.cpuUsage(cpuBefore)
  scheduler.stop()
  unsubscribe()
  server.stop()
  return {
    scenario: scenario.name,
    pods: scenario.pods,
    nodes: scenario.nodes,
    bound,
    seconds: Number(seconds.toFixed(2)),
    cpuSeconds: Number(((cpu.user + cpu.system) / 1e6).toFixed(2)),
    podsPerSecond: Math.round(scenario.pods / seconds),
    longestMs: Math.round(longestMs),
  }
}

function table(results: readonly Result[]): string {
  const header = ['scenario', 'pods', 'nodes', 'bound', 'seconds', 'CPU s', 'pods/s', 'longest ms']
  const rows = [header, ...results.map((result) => Object.values(result).map(String))]
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
  return `${rows.map(line).join('\n')}\n`
}

const results: Result[] = []
for (const scenario of scenarios) results.push(await run(scenario))
process.stdout.write(
  process.argv.includes('--json') ? `${JSON.stringify(results, undefined, 2)}\n` : table(results),
)
