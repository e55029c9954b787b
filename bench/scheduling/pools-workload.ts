/**
 * `pools(N)`: a cluster as it is found in production. Ten NodePools of which three take the pods, 1000
 * nodes at 60 % utilisation, 30 DaemonSets, and N pending pods of 200 shapes.
 */
import {
  type InstanceType,
  labels,
  type Pod,
  podRequests,
  type PodSpec,
  type Requirement,
  type Taint,
} from '@tenon/api'
import {
  allocatableOf,
  type DaemonInput,
  type NodeInput,
  type PoolInput,
  type SchedulingInput,
  type TopologyNode,
} from '@tenon/engine'
import { defaultCatalogue } from '@tenon/provider-kwok'
import { integerBetween, type Random, unit } from '@tenon/runtime'
import { oneOf, pool } from './catalogue.ts'
import { aPod, apartOnHosts, pick, spreadOver } from './pods.ts'

const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c', 'test-zone-d']
const shapeCount = 200
const nodeCount = 1000
const utilisation = 0.6
const batchTaint: Taint = { key: 'workload', value: 'batch', effect: 'NoSchedule' }

/** `general`, `arm` and `batch` accept the pods; the seven pools of other teams come first and do not. */
function pools(catalogue: readonly InstanceType[]): readonly PoolInput[] {
  const linux = (...more: readonly Requirement[]) => [oneOf(labels.os, 'linux'), ...more]
  const teams = Array.from({ length: 7 }, (_, i) =>
    pool(
      `team-${i}`,
      catalogue,
      { requirements: linux(), taints: [{ key: 'team', value: `team-${i}`, effect: 'NoSchedule' }] },
      50 + i,
    ),
  )
  return [
    ...teams,
    pool('general', catalogue, { requirements: linux(oneOf(labels.arch, 'amd64')) }, 30),
    pool('arm', catalogue, { requirements: linux(oneOf(labels.arch, 'arm64')) }, 20),
    pool('batch', catalogue, { requirements: linux(), taints: [batchTaint] }, 10),
  ]
}

/** Most run everywhere; five on one architecture only, five on no node of this cluster. */
function daemons(random: Random): readonly DaemonInput[] {
  return Array.from({ length: 30 }, (_, i) => {
    const requests = {
      cpu: `${integerBetween(random, 5, 25)}m`,
      memory: `${integerBetween(random, 16, 64)}Mi`,
    }
    const nodeSelector =
      i < 20
        ? undefined
        : i < 25
          ? { [labels.arch]: i % 2 === 0 ? 'amd64' : 'arm64' }
          : { [labels.os]: 'windows' }
    const spec: PodSpec = {
      containers: [{ name: 'agent', resources: { requests } }],
      tolerations: [{ operator: 'Exists' }],
      ...(nodeSelector && { nodeSelector }),
    }
    return { name: `daemon-${i}`, namespace: 'kube-system', labels: {}, spec }
  })
}

interface Shape {
  readonly requests: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly spec: Partial<PodSpec>
}

/** Requests, a node constraint and a pod constraint, each random. */
function shape(random: Random, index: number): Shape {
  const own = { app: `app-${index}` }
  const requests = {
    cpu: `${pick(random, [100, 200, 250, 400, 500, 750, 1000, 1500, 2000, 4000])}m`,
    memory: `${pick(random, [128, 256, 512, 1024, 1536, 2048, 4096, 6144, 8192, 16384])}Mi`,
  }
  return { requests, labels: own, spec: { ...nodeRule(random), ...neighbourRule(random, own) } }
}

function nodeRule(random: Random): Partial<PodSpec> {
  const draw = unit(random)
  if (draw < 0.15) return { nodeSelector: { [labels.zone]: pick(random, zones) } }
  if (draw < 0.25) return { nodeSelector: { [labels.arch]: 'arm64' } }
  if (draw < 0.35) return { nodeSelector: { [labels.capacityType]: 'on-demand' } }
  if (draw < 0.5) return { tolerations: [{ key: 'workload', operator: 'Equal', value: 'batch' }] }
  return {}
}

function neighbourRule(random: Random, own: Record<string, string>): Partial<PodSpec> {
  const draw = unit(random)
  if (draw < 0.15) return spreadOver(labels.zone, own)
  if (draw < 0.25) return spreadOver(labels.hostname, own)
  return draw < 0.35 ? apartOnHosts(own) : {}
}

/** A running node, and the pods that fill it to the utilisation. */
interface Running {
  readonly node: NodeInput
  readonly pods: readonly Pod[]
}

function running(
  random: Random,
  index: number,
  type: InstanceType,
  /** Shapes of pods that may run on any node. */
  plain: readonly Shape[],
): Running {
  const name = `node-${String(index).padStart(4, '0')}`
  const arch = type.requirements.find(({ key }) => key === labels.arch)?.values?.[0] ?? ''
  const nodeLabels = {
    ...Object.fromEntries(type.requirements.map(({ key, values }) => [key, values?.[0] ?? ''])),
    [labels.zone]: pick(random, zones),
    [labels.capacityType]: pick(random, ['spot', 'on-demand']),
    [labels.nodePool]: arch === 'arm64' ? 'arm' : 'general',
    [labels.hostname]: name,
  }
  const allocatable = allocatableOf(type)
  const available: Record<string, number> = { ...allocatable }
  const pods: Pod[] = []
  const isBusy = (resource: string) =>
    (available[resource] ?? 0) <= (1 - utilisation) * (allocatable[resource] ?? 0)
  while (!isBusy('cpu') && !isBusy('memory')) {
    const { requests, labels: podLabels } = pick(random, plain)
    const pod = aPod(10_000_000 + index * 10_000 + pods.length, requests, podLabels, { nodeName: name })
    for (const [resource, amount] of Object.entries(podRequests(pod.spec))) {
      available[resource] = Math.max(0, (available[resource] ?? 0) - amount)
    }
    pods.push(pod)
  }
  const node = {
    name,
    labels: nodeLabels,
    taints: [],
    initialized: true,
    available,
    // All DaemonSet pods are assumed to run already, within the utilisation.
    daemonRequests: { cpu: 1000, memory: 4 * 1024 ** 3, pods: 30 },
    usedHostPorts: [],
  }
  return { node, pods }
}

/** The whole input without its policy. */
export function poolsInput(random: Random, count: number): Omit<SchedulingInput, 'policy'> {
  const catalogue = defaultCatalogue()
  const shapes = Array.from({ length: shapeCount }, (_, i) => shape(random, i))
  const plain = shapes.filter(({ spec }) => Object.keys(spec).length === 0)
  const types = catalogue.filter(({ name }) => /^[csm]-(4|8|16)x-.*-linux$/.test(name))
  const nodes = Array.from({ length: nodeCount }, (_, i) => running(random, i, pick(random, types), plain))
  const topologyNode = ({ node }: Running): [string, TopologyNode] => [
    node.name,
    { hostname: node.name, labels: node.labels, taints: [], isCandidate: true },
  ]
  return {
    pods: Array.from({ length: count }, (_, i) => {
      const { requests, labels: podLabels, spec } = shapes[i % shapeCount] as Shape
      return aPod(i, requests, podLabels, spec)
    }),
    nodes: nodes.map(({ node }) => node),
    pools: pools(catalogue),
    daemons: daemons(random),
    topology: {
      pods: nodes.flatMap(({ pods }) => pods),
      nodes: new Map(nodes.map(topologyNode)),
      namespaces: new Map([['default', {}]]),
    },
  }
}
