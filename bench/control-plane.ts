/**
 * The controller on a real control plane with nodes simulated by kwok: two workloads, compared with Karpenter's
 * figures (docs of the reference: two cores, main of 2026-08-20).
 *
 *   node bench/control-plane.ts [--only NAME] [--gates GATES] [--json] [--cpu-prof DIR] [--no-floor]
 *
 * Every workload gets a new control plane. `wall` is the time from the creation of the Deployments until every
 * pod is Ready; `CPU s` and `peak MiB` are the controller's alone, since the start of its process. The rest of
 * the cluster shares the host, so only `CPU s` and `peak MiB` are comparable between hosts. For the wall time
 * there is the row `floor`: the same pods with two of each node from the start and without a controller, which
 * is the host's time for everything else; --no-floor omits it.
 *
 * The reference does not nominate nodes for pods. Neither does Tenon with `--gates PlannedPlacement=false`:
 * fewer writes, but more expensive nodes, as the price shows.
 */
import { kinds, labels, type Node, type NodePool } from '@tenon/api'
import type { WatchingKubeClient } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { deployment } from '../conformance/src/scheduling-proof/objects.ts'
import { benchArguments } from './arguments.ts'
import { pricePerHourOf } from './control-plane/price.ts'
import { followReady, onControlPlane, onStand, type Stand } from './control-plane/stand.ts'

interface Figures {
  readonly wallSeconds: number
  readonly cpuSeconds: number
  readonly peakRssMiB: number
  readonly nodes: number
}

interface Workload {
  readonly name: string
  readonly groups: readonly { readonly replicas: number; readonly cpu: string; readonly memory: string }[]
  readonly reference: Figures
}

interface Row extends Figures {
  readonly workload: string
  /** CPU time of starting, listing and waiting, before any pods exist. */
  readonly startCpuSeconds: number
  readonly pricePerHour: number
  readonly reference: Figures
  /** Wall time with all nodes present from the start; absent if it was not measured. */
  readonly floorSeconds?: number
}

interface Played extends Row {
  readonly instances: readonly Node[]
}

const workloads: readonly Workload[] = [
  {
    name: 'two-shapes',
    groups: [
      { replicas: 500, cpu: '900m', memory: '3100Mi' },
      { replicas: 500, cpu: '3500m', memory: '28Gi' },
    ],
    reference: { wallSeconds: 22.1, cpuSeconds: 4, peakRssMiB: 145, nodes: 12 },
  },
  {
    name: 'five-shapes',
    groups: [
      { replicas: 1000, cpu: '250m', memory: '512Mi' },
      { replicas: 1000, cpu: '500m', memory: '1Gi' },
      { replicas: 1000, cpu: '1', memory: '2Gi' },
      { replicas: 1000, cpu: '100m', memory: '256Mi' },
      { replicas: 1000, cpu: '1500m', memory: '4Gi' },
    ],
    reference: { wallSeconds: 57.1, cpuSeconds: 15.8, peakRssMiB: 333, nodes: 17 },
  },
]
/** Launches on-demand Linux nodes. */
const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter: '30s' },
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [
          { key: labels.os, operator: 'In', values: ['linux'] },
          { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
        ],
      },
    },
  },
}
const giveUpMs = 300_000
const pollMs = 20
const nodePollMs = 200

const values = benchArguments(
  'control-plane',
  'The controller on a real control plane with nodes simulated by kwok.',
  {
    only: { type: 'string', help: 'one workload' },
    gates: { type: 'string', help: 'feature gates of the controller' },
    json: { type: 'boolean', help: 'one JSON document for each workload' },
    'cpu-prof': { type: 'string', help: 'folder for CPU profiles of the controller' },
    'no-floor': { type: 'boolean', help: 'leaves out what the host takes without a controller' },
  },
)
const chosen = workloads.filter(({ name }) => values.only === undefined || values.only === name)
if (chosen.length === 0) {
  console.error(
    `control-plane: --only ${values.only}: give ${workloads.map(({ name }) => name).join(' or ')}`,
  )
  process.exit(1)
}

const clock = new SystemClock()
if (!values.json) line('workload', 'wall s', 'CPU s', 'of it start', 'peak MiB', 'nodes', 'price/h')
for (const workload of chosen) print(await measured(workload))

async function measured(workload: Workload): Promise<Row> {
  const profiling = values['cpu-prof']
  const nodeOptions = profiling === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiling}`]
  const options = values.gates === undefined ? [] : [`--feature-gates=${values.gates}`]
  const { instances, ...row } = await onStand({ clock, pool, nodeOptions, options }, (stand) =>
    play(workload, stand),
  )
  if (values['no-floor']) return row
  return {
    ...row,
    floorSeconds: await onControlPlane(clock, (client) => floorOf(workload, instances, client)),
  }
}

async function play(workload: Workload, { client, controller }: Stand): Promise<Played> {
  const { name, reference } = workload
  const { cpuSeconds: startCpuSeconds } = controller.figures()
  const wallSeconds = await secondsUntilReady(workload, client, () => {
    controller.assertRunning()
  })
  const { cpuSeconds, peakRssMiB } = controller.figures()
  const instances = await client.list(kinds.node)
  return {
    workload: name,
    wallSeconds,
    cpuSeconds,
    startCpuSeconds,
    peakRssMiB,
    nodes: instances.length,
    pricePerHour: pricePerHourOf(instances),
    reference,
    instances,
  }
}

/** The time for the same pods if they only have to be bound to existing nodes. */
async function floorOf(
  workload: Workload,
  instances: readonly Node[],
  client: WatchingKubeClient,
): Promise<number> {
  // Two of each: nothing tells the scheduler how the pods fit the planned nodes.
  for (const [index, { metadata, status }] of [...instances, ...instances].entries()) {
    await client.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: `${metadata.name}-${index}`,
        labels: metadata.labels ?? {},
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
      },
      status: { capacity: status?.capacity ?? {}, allocatable: status?.allocatable ?? {} },
    })
  }
  const areReady = async () => (await client.list(kinds.node)).every(isReadyNode)
  while (!(await areReady())) await clock.sleep(nodePollMs)
  return await secondsUntilReady(workload, client)
}

function isReadyNode({ spec, status }: Node): boolean {
  const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false
  return isReady && (spec?.taints ?? []).length === 0
}

/** From the creation of the Deployments until every pod is Ready. */
async function secondsUntilReady(
  { name, groups }: Workload,
  client: WatchingKubeClient,
  assertGoing: () => void = () => undefined,
): Promise<number> {
  const stop = new AbortController()
  try {
    const isReady = await followReady(client, clock, stop.signal)
    const start = clock.monotonic()
    for (const [index, { replicas, cpu, memory }] of groups.entries()) {
      const parts = { namespace: 'default', name: `group-${index}`, requests: { cpu, memory } }
      const { type, object } = deployment(replicas, parts)
      await client.create(type, object)
    }
    const total = groups.reduce((sum, { replicas }) => sum + replicas, 0)
    while (isReady.size < total) {
      assertGoing()
      if (clock.monotonic() - start > giveUpMs)
        throw new Error(`${name}: only ${isReady.size} of ${total} pods are Ready`)
      await clock.sleep(pollMs)
    }
    return (clock.monotonic() - start) / 1000
  } finally {
    stop.abort()
  }
}

function print(row: Row): void {
  if (values.json) {
    process.stdout.write(`${JSON.stringify(row)}\n`)
    return
  }
  line(row.workload, ...cellsOf(row, row.startCpuSeconds.toFixed(1)), row.pricePerHour.toFixed(2))
  if (row.floorSeconds !== undefined) line('  floor', row.floorSeconds.toFixed(1))
  line('  reference', ...cellsOf(row.reference, ''))
  line('  ratio', ...ratios(row, row.reference))
}

function line(first: string, ...cells: readonly string[]): void {
  process.stdout.write(`${first.padEnd(26)}${cells.map((cell) => cell.padStart(12)).join('')}\n`)
}

function cellsOf(figures: Figures, startCpu: string): readonly string[] {
  const { wallSeconds, cpuSeconds, peakRssMiB, nodes } = figures
  return [wallSeconds.toFixed(1), cpuSeconds.toFixed(1), startCpu, peakRssMiB.toFixed(0), String(nodes)]
}

function ratios(own: Figures, reference: Figures): readonly string[] {
  const ratio = (field: keyof Figures) => (own[field] / reference[field]).toFixed(2)
  return [ratio('wallSeconds'), ratio('cpuSeconds'), '', ratio('peakRssMiB'), ratio('nodes')]
}
