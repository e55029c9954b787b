/**
 * Scheduling throughput of the engine alone: the workloads `diverse(N)` and `preferences(4000)` over
 * the catalogue `fake(400)`. Prints a table; `--json` prints one row a line; `--pods N,N` chooses sizes.
 */
import { parseArgs } from 'node:util'
import { type InstanceType, labels, type Pod, type PodSpec } from '@tenon/api'
import { type SchedulingInput, schedule } from '@tenon/engine'
import { SeededRandom, integerBetween } from '@tenon/runtime'

const gibibyte = 1024 ** 3
const zones = ['test-zone-1', 'test-zone-2', 'test-zone-3']

function catalogue(): readonly InstanceType[] {
  const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
  return Array.from({ length: 400 }, (_, i) => {
    const cpu = i + 1
    const memory = 2 * cpu * gibibyte
    const pricePerHour = 0.1 * cpu + (0.1 * memory) / 1e9
    const offers = [
      ...zones.slice(0, 2).map((zone) => [zone, 'spot'] as const),
      ...zones.map((zone) => [zone, 'on-demand'] as const),
    ]
    return {
      name: `fake-it-${i}`,
      requirements: [
        is(labels.instanceType, `fake-it-${i}`),
        is(labels.arch, 'amd64'),
        is(labels.os, 'linux', 'windows', 'darwin'),
        is(labels.zone, ...zones),
        is(labels.capacityType, 'spot', 'on-demand'),
      ],
      offerings: offers.map(([zone, capacityType]) => ({
        requirements: [is(labels.zone, zone), is(labels.capacityType, capacityType)],
        pricePerHour,
        available: true,
      })),
      capacity: { cpu: cpu * 1000, memory, pods: 10 * cpu },
      overhead: {
        kubeReserved: { cpu: 100, memory: 10 * 1024 ** 2 },
        systemReserved: {},
        evictionThreshold: {},
      },
    }
  })
}

const random = new SeededRandom('scheduling benchmark')
const pick = <T>(list: readonly T[]): T => list[integerBetween(random, 0, list.length - 1)] as T
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

function aPod(i: number, podLabels: Readonly<Record<string, string>>, spec: Partial<PodSpec>): Pod {
  const requests = {
    cpu: `${pick([100, 250, 500, 1000, 1500])}m`,
    memory: `${pick([100, 256, 512, 1024, 2048, 4096])}Mi`,
  }
  const id = String(i).padStart(7, '0')
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `p-${id}`, namespace: 'default', uid: id, labels: podLabels },
    spec: { containers: [{ name: 'app', resources: { requests } }], ...spec },
  }
}

const spreadOver = (topologyKey: string): Partial<PodSpec> => ({
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { 'my-label': pick(letters) } },
    },
  ],
})

function diverse(count: number): readonly Pod[] {
  return Array.from({ length: count }, (_, i) => {
    const group = i < Math.floor(count / 5) * 5 ? i % 5 : 0
    switch (group) {
      case 1:
        return aPod(i, { 'my-label': pick(letters) }, spreadOver(labels.zone))
      case 2:
        return aPod(i, { 'my-label': pick(letters) }, spreadOver(labels.hostname))
      case 3: {
        const own = { 'my-affininity': pick(letters) }
        const term = { topologyKey: labels.zone, labelSelector: { matchLabels: own } }
        return aPod(i, own, {
          affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
        })
      }
      case 4: {
        const term = { topologyKey: labels.hostname, labelSelector: { matchLabels: { app: 'nginx' } } }
        return aPod(
          i,
          { app: 'nginx' },
          { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } },
        )
      }
      default:
        return aPod(i, { 'my-label': pick(letters) }, {})
    }
  })
}

function preferences(count: number): readonly Pod[] {
  const apart = (weight: number, topologyKey: string) => ({
    weight,
    podAffinityTerm: { topologyKey, labelSelector: { matchLabels: { app: 'nginx' } } },
  })
  const affinity: PodSpec['affinity'] = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 1,
          preference: { matchExpressions: [{ key: labels.zone, operator: 'In', values: ['test-zone-1'] }] },
        },
      ],
    },
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [apart(10, labels.zone), apart(1, labels.hostname)],
    },
  }
  return Array.from({ length: count }, (_, i) => aPod(i, { app: 'nginx' }, { affinity }))
}

function input(pods: readonly Pod[], policy: 'Respect' | 'Ignore'): SchedulingInput {
  return {
    pods,
    nodes: [],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    pools: [
      {
        nodePool: {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodePool',
          metadata: { name: 'default', uid: 'pool' },
          spec: {
            template: {
              spec: {
                nodeClassRef: { group: 'karpenter.test.sh', kind: 'TestNodeClass', name: 'default' },
                requirements: [],
              },
            },
          },
        },
        instanceTypes: catalogue(),
        usage: {},
      },
    ],
    policy: {
      preferences: policy,
      minValues: 'Strict',
      wellKnownLabels: new Set([
        labels.nodePool,
        labels.zone,
        labels.region,
        labels.instanceType,
        labels.arch,
        labels.os,
        labels.capacityType,
      ]),
      maxInstanceTypes: 600,
    },
  }
}

const { values } = parseArgs({ options: { json: { type: 'boolean' }, pods: { type: 'string' } } })
const sizes = (values.pods ?? '1,500,1000,2000,5000,10000').split(',').map(Number)
const workloads = [
  ...sizes.map((size) => ({ name: `diverse(${size})`, make: () => input(diverse(size), 'Respect') })),
  { name: 'preferences(4000) Respect', make: () => input(preferences(4000), 'Respect') },
  { name: 'preferences(4000) Ignore', make: () => input(preferences(4000), 'Ignore') },
]
if (!values.json)
  console.log('workload                     pods        ms    pods/s   nodes  unplaced   EUR/h')
for (const { name, make } of workloads) {
  const made = make()
  const start = performance.now()
  const result = schedule(made)
  const ms = performance.now() - start
  const pods = made.pods.length
  const row = {
    workload: name,
    pods,
    ms: Math.round(ms * 10) / 10,
    pods_per_second: Math.round((1000 * pods) / ms),
    nodes: result.claims.length,
    unplaced: result.failures.length,
    price_per_hour: Math.round(100 * result.claims.reduce((sum, claim) => sum + claim.pricePerHour, 0)) / 100,
  }
  if (values.json) console.log(JSON.stringify(row))
  else {
    console.log(
      `${name.padEnd(26)} ${String(pods).padStart(6)} ${row.ms.toFixed(1).padStart(9)} ${String(row.pods_per_second).padStart(9)} ${String(row.nodes).padStart(7)} ${String(row.unplaced).padStart(9)} ${row.price_per_hour.toFixed(2).padStart(9)}`,
    )
  }
}
