/**
 * The effect of consolidation on a cluster that has become too large, on a real control plane with nodes
 * simulated by kwok: eight Deployments of 100 pods each, scaled to 30.
 *
 *   node bench/scale-down.ts [--only small|all] [--json] [--rest MINUTES] [--gates GATES]
 *
 *   --only    nodes of at most 16 CPU (small), or every type (all); default: both
 *   --rest    how long to watch the cluster once it has settled (default 10)
 *   --gates   feature gates of the controller, such as GlobalConsolidation=true
 *
 * `settled` is the time from the first scaling until the last change of a NodeClaim or Node; `launches` are
 * NodeClaims created in that time, `moves` commands after it. The bound is the price of the requests, by CPU
 * and byte, as if nodes were available in any size.
 */
import { karpenterKinds, kinds, labels, type NodePool, parseResources } from '@tenon/api'
import { createCacheRegistry, type WatchingKubeClient } from '@tenon/kube'
import { SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import { eightShapes, smallNodes } from '../conformance/src/planned-placement/workloads.ts'
import { deployment, proofKinds } from '../conformance/src/scheduling-proof/objects.ts'
import { benchArguments } from './arguments.ts'
import { pricePerHourOf } from './control-plane/price.ts'
import { followReady, onStand, type Stand } from './control-plane/stand.ts'

interface Reference {
  readonly nodes?: number
  readonly pricePerHour: number
  readonly settledSeconds: number
  readonly launches?: number
}

interface Row extends Required<Reference> {
  readonly workload: string
  readonly priceOverBound: number
  readonly nodesBefore: number
  readonly pricePerHourBefore: number
  /** NodeClaims created or deleted while the cluster was at rest. */
  readonly moves: number
  /** Share of one core at rest. */
  readonly restCores: number
  readonly cpuSeconds: number
  readonly peakRssMiB: number
  readonly reference: Reference
}

const cases = [
  {
    name: 'small',
    requirements: smallNodes,
    reference: { nodes: 25, pricePerHour: 9.55, settledSeconds: 287, launches: 10 },
  },
  { name: 'all', requirements: [], reference: { pricePerHour: 10.005, settledSeconds: 60 } },
] as const
const replicasAfter = 30
/** Per hour, of one CPU and of 10^9 bytes of memory on demand. */
const prices = { cpu: 0.025, memory: 0.001 } as const
const pollMs = 100
const giveUpMs = 600_000
/** Longer than any command takes from its decision to the end of its drains. */
const settledMs = 60_000

const values = benchArguments(
  'scale-down',
  'What consolidation makes of a cluster that has become too large, on a real control plane.',
  {
    only: { type: 'string', help: 'small or all: nodes of at most 16 CPU, or every type' },
    json: { type: 'boolean', help: 'one JSON document for each case' },
    rest: { type: 'string', default: '10', help: 'minutes that the cluster is watched once it has settled' },
    gates: { type: 'string', help: 'feature gates of the controller' },
  },
)
const chosen = cases.filter(({ name }) => values.only === undefined || values.only === name)
if (chosen.length === 0) {
  console.error(`scale-down: --only ${values.only}: give ${cases.map(({ name }) => name).join(' or ')}`)
  process.exit(1)
}
const restMs = Number(values.rest) * 60_000
const clock = new SystemClock()
for (const each of chosen) {
  const row = await onStand(
    {
      clock,
      pool: poolOf(each.requirements),
      options: values.gates ? [`--feature-gates=${values.gates}`] : [],
    },
    (stand) => play(each.name, each.reference, stand),
  )
  process.stdout.write(values.json ? `${JSON.stringify(row)}\n` : tableOf(row))
}

function poolOf(requirements: typeof smallNodes): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: {
      disruption: {
        consolidationPolicy: 'WhenEmptyOrUnderutilized',
        consolidateAfter: '0s',
        budgets: [{ nodes: '100%' }],
      },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [
            { key: labels.os, operator: 'In', values: ['linux'] },
            { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
            ...requirements,
          ],
        },
      },
    },
  }
}

async function play(workload: string, reference: Reference, { client, controller }: Stand): Promise<Row> {
  const stop = new AbortController()
  try {
    const isReady = await followReady(client, clock, stop.signal)
    const changes = await followInstances(client, stop.signal)
    for (const { name, replicas, cpu, memory } of eightShapes) {
      const { type, object } = deployment(replicas, { namespace: 'default', name, requests: { cpu, memory } })
      await client.create(type, object)
    }
    const total = eightShapes.reduce((sum, { replicas }) => sum + replicas, 0)
    await until(`${total} pods are Ready`, () => isReady.size === total)
    await settled(changes)
    const before = await fleet(client)
    say(`${before.nodes} nodes at ${before.pricePerHour.toFixed(2)} per hour for ${total} pods; scaling down`)

    const startMs = clock.monotonic()
    const createdBefore = changes.created
    for (const { name } of eightShapes)
      await client.patch(
        proofKinds.deployment,
        { name, namespace: 'default' },
        { spec: { replicas: replicasAfter } },
      )
    changes.lastMs = startMs
    await settled(changes)
    const settledSeconds = (changes.lastMs - startMs) / 1000
    const launches = changes.created - createdBefore
    const after = await fleet(client)
    say(
      `${after.nodes} nodes at ${after.pricePerHour.toFixed(2)} per hour after ${settledSeconds.toFixed(0)} s`,
    )

    const movesBefore = changes.created + changes.deleted
    const cpuBefore = controller.figures().cpuSeconds
    const restStartMs = clock.monotonic()
    while (clock.monotonic() - restStartMs < restMs) await clock.sleep(pollMs)
    const { cpuSeconds, peakRssMiB } = controller.figures()
    return {
      workload,
      ...after,
      priceOverBound: after.pricePerHour / bound(),
      settledSeconds,
      launches,
      nodesBefore: before.nodes,
      pricePerHourBefore: before.pricePerHour,
      moves: changes.created + changes.deleted - movesBefore,
      restCores: (cpuSeconds - cpuBefore) / Math.max((clock.monotonic() - restStartMs) / 1000, 1),
      cpuSeconds,
      peakRssMiB,
      reference,
    }
  } finally {
    stop.abort()
  }

  async function settled(changes: Changes): Promise<void> {
    changes.lastMs = clock.monotonic()
    await until('the instances stay as they are', () => clock.monotonic() - changes.lastMs > settledMs)
  }

  async function until(what: string, isReached: () => boolean): Promise<void> {
    const deadline = clock.monotonic() + giveUpMs
    while (!isReached()) {
      controller.assertRunning()
      if (clock.monotonic() > deadline)
        throw new Error(`${workload}: not within ${giveUpMs / 1000} s: ${what}`)
      await clock.sleep(pollMs)
    }
  }
}

/** Changes of instances. */
interface Changes {
  created: number
  deleted: number
  /** When a NodeClaim or Node was last created or deleted. */
  lastMs: number
}

async function followInstances(client: WatchingKubeClient, signal: AbortSignal): Promise<Changes> {
  const changes: Changes = { created: 0, deleted: 0, lastMs: clock.monotonic() }
  const random = new SeededRandom('scale-down')
  const registry = createCacheRegistry({ client, clock, logger: silentLogger, random })
  registry.cache(karpenterKinds.nodeClaim).onChange(({ kind }) => {
    if (kind === 'updated') return
    changes[kind === 'deleted' ? 'deleted' : 'created']++
    changes.lastMs = clock.monotonic()
  })
  registry.cache(kinds.node).onChange(({ kind }) => {
    if (kind !== 'updated') changes.lastMs = clock.monotonic()
  })
  registry.start(signal)
  await registry.synced(signal)
  return changes
}

async function fleet(client: WatchingKubeClient): Promise<{ nodes: number; pricePerHour: number }> {
  const nodes = await client.list(kinds.node)
  return { nodes: nodes.length, pricePerHour: pricePerHourOf(nodes) }
}

function bound(): number {
  return eightShapes.reduce((sum, { cpu, memory }) => {
    const { cpu: cores = 0, memory: bytes = 0 } = parseResources({ cpu, memory })
    return sum + replicasAfter * ((prices.cpu * cores) / 1000 + (prices.memory * bytes) / 1e9)
  }, 0)
}

function say(line: string): void {
  process.stderr.write(`scale-down: ${line}\n`)
}

function tableOf(row: Row): string {
  const { reference } = row
  const lines: readonly (readonly [string, string, string])[] = [
    ['nodes', `${row.nodesBefore} -> ${row.nodes}`, reference.nodes?.toString() ?? ''],
    [
      'price per hour',
      `${row.pricePerHourBefore.toFixed(2)} -> ${row.pricePerHour.toFixed(2)}`,
      reference.pricePerHour.toFixed(2),
    ],
    ['over the bound', row.priceOverBound.toFixed(3), (reference.pricePerHour / bound()).toFixed(3)],
    ['settled', `${row.settledSeconds.toFixed(0)} s`, `${reference.settledSeconds} s`],
    ['launches', String(row.launches), reference.launches === undefined ? '' : `>= ${reference.launches}`],
    ['moves at rest', String(row.moves), ''],
    ['cores at rest', row.restCores.toFixed(4), ''],
    ['CPU', `${row.cpuSeconds.toFixed(1)} s`, ''],
    ['peak RSS', `${row.peakRssMiB.toFixed(0)} MiB`, ''],
  ]
  const body = lines.map(
    ([what, value, than]) => `${what.padEnd(20)}${value.padStart(18)}${than.padStart(14)}`,
  )
  return `${[`${row.workload.padEnd(20)}${'Tenon'.padStart(18)}${'reference'.padStart(14)}`, ...body].join('\n')}\n\n`
}
