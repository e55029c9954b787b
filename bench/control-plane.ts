/**
 * The controller on a real control plane with nodes simulated by kwok: two workloads, beside what
 * Karpenter took for the same (docs of the reference: 2-core machine, main of 2026-08-20).
 *
 *   node bench/control-plane.ts [--only NAME] [--json] [--cpu-prof DIR]
 *
 * Every workload gets a control plane of its own, so that it finds nothing of the one before. `wall`
 * counts from the creation of the Deployments until every pod is Ready; `CPU s` and `peak MiB` are the
 * controller's alone, from the start of its process on. The rest of the cluster shares the machine, so
 * that only `CPU s` and `peak MiB` compare well between machines.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { karpenterKinds, kinds, labels, type NodePool, type Pod } from '@tenon/api'
import { createCacheRegistry, createKubeClient, loadKubeConfig, type WatchingKubeClient } from '@tenon/kube'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import { startControlPlane } from '../conformance/src/control-plane.ts'
import { applyCrds } from '../conformance/src/scheduling-proof/autoscaler.ts'
import { deployment } from '../conformance/src/scheduling-proof/objects.ts'
import { ControllerProcess } from './control-plane/controller-process.ts'

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
  /** Processor time of starting, listing and waiting, before there were pods. */
  readonly startCpuSeconds: number
  readonly reference: Figures
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
const readyWithinMs = 60_000
const settleMs = 2000
const giveUpMs = 300_000
const pollMs = 20

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    'cpu-prof': { type: 'string' },
  },
})
const chosen = workloads.filter(({ name }) => values.only === undefined || values.only === name)
if (chosen.length === 0) {
  console.error(
    `control-plane: --only ${values.only}: give ${workloads.map(({ name }) => name).join(' or ')}`,
  )
  process.exit(1)
}

const clock = new SystemClock()
if (!values.json) line('workload', 'wall s', 'CPU s', 'of it start', 'peak MiB', 'nodes')
for (const workload of chosen) print(await measured(workload))

async function measured(workload: Workload): Promise<Row> {
  const plane = await startControlPlane()
  const folder = await mkdtemp(join(tmpdir(), 'tenon-bench-control-plane-'))
  const config = loadKubeConfig({ env: {}, kubeconfig: plane.kubeconfigPath, clock })
  const client = createKubeClient({ transport: config.transport, clock, userAgent: 'bench' })
  let isDone = false
  try {
    await applyCrds(client, clock)
    await client.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default' },
      spec: {},
    })
    await client.create(karpenterKinds.nodePool, pool)
    const profiling = values['cpu-prof']
    const controller = await ControllerProcess.start({
      kubeconfigPath: plane.kubeconfigPath,
      log: join(folder, 'controller.log'),
      clock,
      ...(profiling !== undefined && { nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${profiling}`] }),
    })
    try {
      await controller.ready(readyWithinMs)
      await clock.sleep(settleMs)
      const row = await play(workload, client, controller)
      isDone = true
      return row
    } finally {
      await controller.stop()
    }
  } finally {
    config.close()
    await plane.stop()
    // The log tells what went wrong.
    if (isDone) await rm(folder, { recursive: true, force: true })
  }
}

async function play(
  { name, groups, reference }: Workload,
  client: WatchingKubeClient,
  controller: ControllerProcess,
): Promise<Row> {
  const { cpuSeconds: startCpuSeconds } = controller.figures()
  const stop = new AbortController()
  try {
    const isReady = await countReady(client, stop.signal)
    const start = clock.monotonic()
    for (const [index, { replicas, cpu, memory }] of groups.entries()) {
      const parts = { namespace: 'default', name: `group-${index}`, requests: { cpu, memory } }
      const { type, object } = deployment(replicas, parts)
      await client.create(type, object)
    }
    const total = groups.reduce((sum, { replicas }) => sum + replicas, 0)
    while (isReady.size < total) {
      controller.assertRunning()
      if (clock.monotonic() - start > giveUpMs)
        throw new Error(`${name}: only ${isReady.size} of ${total} pods are Ready`)
      await clock.sleep(pollMs)
    }
    const wallSeconds = (clock.monotonic() - start) / 1000
    const { cpuSeconds, peakRssMiB } = controller.figures()
    const nodes = (await client.list(kinds.node)).length
    return { workload: name, wallSeconds, cpuSeconds, startCpuSeconds, peakRssMiB, nodes, reference }
  } finally {
    stop.abort()
  }
}

/** UIDs of the pods that are Ready, kept up to date until `signal` aborts. */
async function countReady(client: WatchingKubeClient, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const isReady = new Set<string>()
  const random = new SeededRandom('bench')
  const registry = createCacheRegistry({ client, clock, logger: silentLogger, random })
  const pods = registry.cache(kinds.pod)
  pods.onChange(({ kind, object }) => {
    const uid = object.metadata.uid ?? ''
    if (kind !== 'deleted' && isPodReady(object)) isReady.add(uid)
    else isReady.delete(uid)
  })
  registry.start(signal)
  await registry.synced(signal)
  return isReady
}

function isPodReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
}

function print(row: Row): void {
  if (values.json) {
    process.stdout.write(`${JSON.stringify(row)}\n`)
    return
  }
  line(row.workload, ...cellsOf(row, row.startCpuSeconds.toFixed(1)))
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
