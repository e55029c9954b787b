/**
 * Duration of an iteration of the Cluster Autoscaler mode, on a cluster in memory with ten node groups, without
 * the time of cloud and API server. With `--provider cluster-api` there are forty MachineDeployments, and the time of
 * the provider counts too.
 *
 *   node bench/cluster-autoscaler.ts [--provider cluster-api] [--nodes N --pods N] [--pending N] [--json]
 *
 * `first` is the first iteration of a process, with `pending` pods of 20 Deployments that fit nowhere; `rest`
 * one without pending pods, the median of seven; `unneeded` the same with half of the nodes nearly empty, so
 * that each is evaluated for removal; `held` the longest time that the thread was blocked; `requests` those to the
 * management cluster in the seven iterations at rest, without watches.
 */
import type { Node, Pod } from '@tenon/api'
import { createAutoscaler, defaultOptions, Explanations } from '@tenon/cluster-autoscaler'
import { VolumeIndex } from '@tenon/filters'
import type { NodeGroup, NodeGroups } from '@tenon/provider'
import { eventLoopTurns, SeededRandom, silentLogger, SystemClock, type Turns } from '@tenon/runtime'
import { benchArguments } from './arguments.ts'
import { type BenchCloud, openClusterApi } from './cluster-autoscaler/cluster-api.ts'

const deploymentCount = 20

interface Size {
  readonly nodes: number
  readonly pods: number
}

interface Row extends Size {
  readonly pending: number
  readonly firstSeconds: number
  readonly restSeconds: number
  readonly unneededSeconds: number
  readonly heldMs: number
  readonly restHeldMs: number
  readonly added: number
  readonly requests: number
}

const values = benchArguments(
  'cluster-autoscaler',
  'What an iteration of the Cluster Autoscaler mode takes on a cluster in memory.',
  {
    provider: { type: 'string', default: 'none', help: 'cluster-api, or none: groups that cost no time' },
    nodes: { type: 'string', help: 'nodes of the cluster; with --pods' },
    pods: { type: 'string', help: 'pods of the cluster; with --nodes' },
    pending: { type: 'string', default: '500', help: 'pods that find no place' },
    json: { type: 'boolean', help: 'one JSON document for each size' },
  },
)
const pending = Number(values.pending)
const isClusterApi = values.provider === 'cluster-api'
const groupCount = isClusterApi ? 40 : 10
const sizes: readonly Size[] =
  values.nodes === undefined
    ? [
        { nodes: 250, pods: 7500 },
        { nodes: 1000, pods: 30_000 },
        { nodes: 5000, pods: 100_000 },
      ]
    : [{ nodes: Number(values.nodes), pods: Number(values.pods ?? Number(values.nodes) * 30) }]

function aNode(index: number): Node {
  const amounts = { cpu: '16', memory: '64Gi', pods: '110' }
  const name = `node-${index}`
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: name,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: {
        'kubernetes.io/hostname': name,
        'topology.kubernetes.io/zone': `zone-${index % 3}`,
        pool: `${index % groupCount}`,
      },
    },
    spec: { providerID: `cloud://${name}` },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
  }
}

function aPod(name: string, owner: number, cpu: string, nodeName?: string): Pod {
  const app = `app-${owner}`
  // A fifth spreads over zones, another over nodes.
  const topologyKey = owner % 5 === 0 ? 'topology.kubernetes.io/zone' : 'kubernetes.io/hostname'
  const spread = {
    topologyKey,
    maxSkew: 5,
    whenUnsatisfiable: 'DoNotSchedule' as const,
    labelSelector: { matchLabels: { app } },
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      labels: { app },
      creationTimestamp: '2026-01-01T00:00:00Z',
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: app, uid: `uid-${app}`, controller: true },
      ],
    },
    spec: {
      containers: [{ name: 'main', resources: { requests: { cpu, memory: '1Gi' } } }],
      ...(owner % 5 < 2 && { topologySpreadConstraints: [spread] }),
      ...(nodeName !== undefined && { nodeName }),
    },
    status:
      nodeName === undefined
        ? { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }
        : { phase: 'Running' },
  }
}

/** Measures how long the thread was blocked between two turns. */
class MeasuredTurns implements Turns {
  longestMs = 0
  #sinceMs = performance.now()

  start(): void {
    this.#sinceMs = performance.now()
  }

  async next(): Promise<void> {
    this.longestMs = Math.max(this.longestMs, performance.now() - this.#sinceMs)
    await eventLoopTurns.next()
    this.#sinceMs = performance.now()
  }
}

function openGroups(nodes: readonly Node[]): BenchCloud {
  const groups = new Map<string, NodeGroup>()
  const groupOf = (node: Node) => `group-${node.metadata.labels?.['pool']}`
  for (const node of nodes) {
    const id = groupOf(node)
    const targetSize = (groups.get(id)?.targetSize ?? 0) + 1
    groups.set(id, { id, name: id, minSize: 1, maxSize: 100_000, targetSize })
  }
  let added = 0
  const cloud: NodeGroups = {
    refresh: () => Promise.resolve([]),
    list: () => [...groups.values()],
    group: (id) => groups.get(id),
    groupOf: (node) => Promise.resolve({ kind: 'group', groupId: groupOf(node) }),
    instances: () => Promise.resolve([]),
    increaseSize: (_id, delta) => {
      added += delta
      return Promise.resolve({ targetSize: 0, settled: Promise.resolve() })
    },
    deleteInstances: () => Promise.resolve(),
    decreaseTargetSize: () => Promise.resolve('unsupported'),
  }
  return { groups: cloud, added: () => added, requests: () => 0, close: () => undefined }
}

const open = (nodes: readonly Node[]) => (isClusterApi ? openClusterApi(nodes) : openGroups(nodes))

function loopOver(
  nodes: readonly Node[],
  pods: { list: readonly Pod[] },
  nodeGroups: NodeGroups,
  turns: Turns,
) {
  const volumes = new VolumeIndex()
  return createAutoscaler({
    options: { ...defaultOptions, isDryRun: false },
    cluster: {
      cache: {
        nodes: () => nodes,
        pods: () => pods.list,
        namespaces: () => new Map([['default', {}]]),
        volumes: () => volumes,
        devices: () => undefined,
        configMap: () => undefined,
        controllerOf: () => ({ replicas: 10_000 }),
        disruptionBudgets: [],
        daemonSets: [],
        deviceUse: new Map(),
        applications: undefined,
        requests: undefined,
        quotas: undefined,
      },
      reader: {
        node: () => Promise.resolve(undefined),
        podsOf: () => Promise.resolve([]),
        disruptionBudgets: () => Promise.resolve([]),
        controllerOf: () => ({ replicas: 10_000 }),
        cachedNode: () => undefined,
      },
      listNodes: () => Promise.resolve(nodes),
      mayRemove: () => Promise.resolve(true),
      writer: {
        updateNode: () => Promise.resolve(undefined),
        evict: () => Promise.resolve(),
        nominate: () => Promise.resolve(),
        writeRequestConditions: () => Promise.resolve(undefined),
        writeQuotaStatus: () => Promise.resolve(),
        deleteRequest: () => Promise.resolve(),
      },
    },
    nodeGroups,
    reporting: {
      events: { status: () => undefined, object: () => undefined },
      metrics: {
        set: () => undefined,
        clear: () => undefined,
        add: () => undefined,
        observe: () => undefined,
      },
      status: { write: () => Promise.resolve() },
      health: { noteActivity: () => undefined, noteSuccess: () => undefined },
      debugging: {
        snapshotz: { isWanted: false, provide: () => undefined, fail: () => undefined },
        explanations: new Explanations(),
      },
      logger: silentLogger,
    },
    capabilities: { clock: new SystemClock(), turns, random: new SeededRandom('bench') },
    grpcExpander: (options) => Promise.resolve(options),
  })
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return (performance.now() - start) / 1000
}

function median(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0
}

async function measured({ nodes: nodeCount, pods: podCount }: Size): Promise<Row> {
  const nodes = Array.from({ length: nodeCount }, (_, index) => aNode(index))
  const perNode = podCount / nodeCount
  const cpu = `${Math.floor(15_000 / perNode)}m`
  const running = Array.from({ length: podCount }, (_, index) =>
    aPod(`pod-${index}`, Math.floor(index / nodeCount) % deploymentCount, cpu, `node-${index % nodeCount}`),
  )
  const waiting = Array.from({ length: pending }, (_, index) =>
    aPod(`new-${index}`, 100 + (index % deploymentCount), '1500m'),
  )
  const { signal } = new AbortController()
  const turns = new MeasuredTurns()
  const pods = { list: [...running, ...waiting] }
  const cloud = await open(nodes)
  const autoscaler = loopOver(nodes, pods, cloud.groups, turns)
  turns.start()
  const firstSeconds = await timed(() => autoscaler.runOnce(signal))
  const firstHeldMs = turns.longestMs
  turns.longestMs = 0
  pods.list = running
  const requestsBefore = cloud.requests()
  const rest: number[] = []
  for (let count = 0; count < 7; count++) rest.push(await timed(() => autoscaler.runOnce(signal)))
  const requests = cloud.requests() - requestsBefore
  // Half of the nodes keep three pods.
  const few = running.filter((_, index) => (index % nodeCount) % 2 === 0 || index < 3 * nodeCount)
  const unneeded: number[] = []
  const otherCloud = await open(nodes)
  const other = loopOver(nodes, { list: few }, otherCloud.groups, turns)
  turns.start()
  for (let count = 0; count < 3; count++) unneeded.push(await timed(() => other.runOnce(signal)))
  for (const each of [cloud, otherCloud]) each.close()
  return {
    nodes: nodeCount,
    pods: podCount,
    pending,
    firstSeconds,
    restSeconds: median(rest),
    unneededSeconds: median(unneeded),
    heldMs: firstHeldMs,
    restHeldMs: turns.longestMs,
    added: cloud.added(),
    requests,
  }
}

const rows: Row[] = []
for (const size of sizes) rows.push(await measured(size))
if (values.json) console.log(JSON.stringify(rows))
else {
  console.log(
    '  nodes    pods  pending   added   first s    rest s  unneeded s  held ms: first, rest  requests',
  )
  for (const row of rows) {
    const cells = [
      `${row.nodes}`.padStart(7),
      `${row.pods}`.padStart(8),
      `${row.pending}`.padStart(9),
      `${row.added}`.padStart(8),
      row.firstSeconds.toFixed(3).padStart(10),
      row.restSeconds.toFixed(3).padStart(10),
      row.unneededSeconds.toFixed(3).padStart(12),
      row.heldMs.toFixed(0).padStart(16),
      row.restHeldMs.toFixed(0).padStart(6),
      `${row.requests}`.padStart(10),
    ]
    console.log(cells.join(''))
  }
  const [small, large] = [rows[0], rows.at(-1)]
  if (small !== undefined && large !== undefined && small !== large) {
    const by = large.nodes / small.nodes
    const growth = (of: (row: Row) => number) => (Math.log(of(large) / of(small)) / Math.log(by)).toFixed(2)
    console.log(
      `growth with nodes^k: first ${growth((row) => row.firstSeconds)}, rest ${growth((row) => row.restSeconds)}, unneeded ${growth((row) => row.unneededSeconds)}`,
    )
  }
}
