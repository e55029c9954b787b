/** Running clusters, for questions about removing nodes. */
import {
  type InstanceType,
  labels,
  type Pod,
  podRequests,
  type Requirement,
  type Resources,
} from '@tenon/api'
import {
  allocatableOf,
  type CandidateInput,
  type ConsolidationQuestion,
  type NodeInput,
  type SchedulingInput,
  type TopologyNode,
} from '@tenon/engine'
import { defaultCatalogue } from '@tenon/provider-kwok'
import { integerBetween, SeededRandom } from '@tenon/runtime'
import { oneOf, pool } from '../scheduling/catalogue.ts'
import { eightShapes, diverse, pick } from '../scheduling/pods.ts'
import { inputOf, workloads } from '../scheduling/workloads.ts'

/** A cluster and the question about it. */
export interface Cluster {
  readonly input: SchedulingInput
  readonly question: ConsolidationQuestion
}

export interface ClusterShape {
  readonly nodes: number
  readonly pods: number
  readonly kind: 'eightShapes' | 'diverse'
  /** Of the largest type. */
  readonly mostCores: number
}

/** Deterministic. */
export function clusterOf({ nodes: nodeCount, pods: podCount, kind, mostCores }: ClusterShape): Cluster {
  const random = new SeededRandom(`${kind} ${nodeCount} ${podCount}`)
  const cores = 'karpenter.kwok.sh/instance-cpu'
  const requirements: readonly Requirement[] = [
    oneOf(labels.os, 'linux'),
    oneOf(labels.capacityType, 'on-demand'),
    { key: cores, operator: 'Lt', values: [String(mostCores + 1)] },
  ]
  const catalogue = defaultCatalogue()
  const nodePool = pool('default', catalogue, { requirements })
  const types = catalogue.filter(
    (type) => isLinux(type) && isBetween(type.capacity['cpu'] ?? 0, 500 * mostCores, 1000 * mostCores),
  )
  const drawn =
    kind === 'eightShapes'
      ? Array.from({ length: Math.ceil(podCount / 800) }, eightShapes).flat()
      : diverse(random, podCount)
  const pods = drawn.slice(0, podCount).map((pod, index) => renamed(pod, index))
  const instances = Array.from({ length: nodeCount }, (_, index) =>
    instance(index, pick(random, types), random),
  )
  const homes = settle(pods, instances)
  const workload = workloads[0]
  if (workload === undefined) throw new Error('there are no workloads')
  const { policy } = inputOf(workload, 'none')
  const topologyNodes = new Map(
    instances.map(({ name, nodeLabels }): [string, TopologyNode] => [
      name,
      { hostname: name, labels: nodeLabels, taints: [], isCandidate: true },
    ]),
  )
  return {
    input: {
      pods: [...homes.keys()],
      nodes: instances.map(nodeInput),
      pools: [{ ...nodePool, usage: {} }],
      daemons: [],
      topology: { pods: [], nodes: topologyNodes, namespaces: new Map([['default', {}]]) },
      policy: { ...policy, simulation: 'disruption' },
      origins: new Map([...homes.keys()].map((pod) => [pod.metadata.uid ?? '', 'candidate'])),
    },
    question: {
      kind: 'consolidate',
      search: 'survey',
      candidates: instances.map((each) => candidate(each)),
      budgets: new Map([['default', nodeCount]]),
      totals: new Map(),
      spotToSpot: false,
      unseenPools: [],
    },
  }
}

interface Instance {
  readonly name: string
  readonly type: InstanceType
  readonly nodeLabels: Readonly<Record<string, string>>
  readonly free: Record<string, number>
  readonly pods: Pod[]
  readonly pricePerHour: number
}

const isBetween = (amount: number, least: number, most: number) => amount >= least && amount <= most

function isLinux({ requirements }: InstanceType): boolean {
  return requirements.some(({ key, values }) => key === labels.os && values?.includes('linux') === true)
}

function instance(index: number, type: InstanceType, random: SeededRandom): Instance {
  const name = `node-${String(index).padStart(5, '0')}`
  const offering = pick(
    random,
    type.offerings.filter(({ requirements }) =>
      requirements.some(({ key, values }) => key === labels.capacityType && values?.[0] === 'on-demand'),
    ),
  )
  const fixed = Object.fromEntries(
    [...type.requirements, ...offering.requirements].map(({ key, values }) => [key, values?.[0] ?? '']),
  )
  return {
    name,
    type,
    nodeLabels: { ...fixed, [labels.hostname]: name, [labels.nodePool]: 'default' },
    free: { ...allocatableOf(type) },
    pods: [],
    pricePerHour: offering.pricePerHour ?? Number.NaN,
  }
}

/** Puts each pod on one of the emptiest of some nodes that fit; pods that do not fit are omitted. */
function settle(pods: readonly Pod[], instances: readonly Instance[]): ReadonlyMap<Pod, Instance> {
  const random = new SeededRandom('homes')
  const homes = new Map<Pod, Instance>()
  for (const pod of pods) {
    const requests = podRequests(pod.spec)
    const holds = ({ free }: Instance) =>
      Object.entries(requests).every(([name, amount]) => (free[name] ?? 0) >= amount)
    const start = integerBetween(random, 0, instances.length - 1)
    for (let i = 0; i < instances.length; i++) {
      const home = instances[(start + i) % instances.length] as Instance
      if (!holds(home)) continue
      for (const [name, amount] of Object.entries(requests)) home.free[name] = (home.free[name] ?? 0) - amount
      home.pods.push(pod)
      homes.set(pod, home)
      break
    }
  }
  return homes
}

function nodeInput({ name, nodeLabels, free }: Instance): NodeInput {
  return {
    name,
    labels: nodeLabels,
    taints: [],
    initialized: true,
    available: free,
    daemonRequests: {},
    usedHostPorts: [],
  }
}

function candidate({ name, type, pods, pricePerHour }: Instance): CandidateInput {
  const capacity: Resources = { ...type.capacity, nodes: 1 }
  return {
    node: name,
    nodePool: 'default',
    policy: 'WhenEmptyOrUnderutilized',
    capacityType: 'on-demand',
    instanceType: type.name,
    pricePerHour,
    disruptionCost: 1 + pods.length,
    capacity,
    pods: pods.map(({ metadata }) => metadata.uid ?? ''),
  }
}

function renamed(pod: Pod, index: number): Pod {
  const name = `pod-${String(index).padStart(6, '0')}`
  return { ...pod, metadata: { ...pod.metadata, name, uid: name } }
}
