/** Builders for tests and benchmarks: boring defaults, a test states only what matters to it. */
import {
  type InstanceType,
  labels,
  type NodePool,
  type NodeSelectorRequirement,
  type Offering,
  type Pod,
  type PodAffinityTerm,
  type PodSpec,
  type PricePerHour,
  parseResources,
  type Requirement,
  type TopologySpreadConstraint,
  wellKnownLabels,
} from '@tenon/api'
import type {
  DaemonInput,
  NodeInput,
  PoolInput,
  SchedulingInput,
  SchedulingPolicy,
  TopologyInput,
} from '../input/input.ts'
import { renderPodReason } from '../reasons/reasons.ts'
import type { NewClaim, SchedulingResult } from '../input/result.ts'

let serial = 0

/** A pending pod asking for `requests`. */
export function aPod(
  requests: Readonly<Record<string, string>> = { cpu: '100m' },
  spec: Partial<PodSpec> = {},
): Pod {
  const id = String(serial++).padStart(6, '0')
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `pod-${id}`,
      namespace: 'default',
      uid: `uid-${id}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { containers: [{ name: 'app', resources: { requests } }], ...spec },
  }
}

/** A type with one on-demand offering per zone at `cpu` × 0.05 an hour. */
export function aType(
  name: string,
  cpu: number,
  memoryGi: number,
  zones: readonly string[] = ['zone-1'],
): InstanceType {
  const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, 'amd64'),
      is(labels.os, 'linux'),
      is(labels.zone, ...zones),
      is(labels.capacityType, 'on-demand'),
    ],
    offerings: zones.map((zone) => ({
      requirements: [is(labels.zone, zone), is(labels.capacityType, 'on-demand')],
      pricePerHour: cpu * 0.05,
      available: true,
    })),
    capacity: parseResources({ cpu: String(cpu), memory: `${memoryGi}Gi`, pods: '110' }),
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

/** A ready pool without requirements. */
export function aPool(
  name = 'default',
  spec: Partial<NodePool['spec']> = {},
  template: Partial<NodePool['spec']['template']['spec']> = {},
): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name, uid: `pool-${name}` },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [],
          ...template,
        },
      },
      ...spec,
    },
  }
}

export const strictPolicy: SchedulingPolicy = {
  preferences: 'Respect',
  minValues: 'Strict',
  wellKnownLabels: new Set(wellKnownLabels),
  maxInstanceTypes: 600,
}

/** Types of 2, 4, 8 and 16 cores with 4 GiB each core. */
const fourTypes: readonly InstanceType[] = [2, 4, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4))

export function aPoolInput(nodePool = aPool(), instanceTypes = fourTypes): PoolInput {
  return { nodePool, instanceTypes, usage: {} }
}

/** An initialized node of 4 cores and 16 GiB. */
export function aNode(name: string, overrides: Partial<NodeInput> = {}): NodeInput {
  return {
    name,
    labels: { [labels.zone]: 'zone-1', [labels.os]: 'linux' },
    taints: [],
    initialized: true,
    available: parseResources({ cpu: '4', memory: '16Gi', pods: '110' }),
    daemonRequests: {},
    usedHostPorts: [],
    ...overrides,
  }
}

export function anInput(overrides: Partial<SchedulingInput> = {}): SchedulingInput {
  return {
    pods: [],
    nodes: [],
    pools: [aPoolInput()],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    policy: strictPolicy,
    ...overrides,
  }
}

/** `count` things, each made with its index. */
export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** Types of 2, 4, 8 and 16 cores that are sold in each of `zones`. */
export function typesIn(...zones: readonly string[]): readonly InstanceType[] {
  return [2, 4, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
}

export function anExpression(
  key: string,
  operator: NodeSelectorRequirement['operator'],
  ...values: readonly string[]
): NodeSelectorRequirement {
  return values.length === 0 ? { key, operator } : { key, operator, values }
}

/** Required node affinity: any of `terms`, each a list of expressions, will do. */
export function requiring(...terms: readonly (readonly NodeSelectorRequirement[])[]): Partial<PodSpec> {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }))
  return {
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    },
  }
}

/** Preferred node affinity: one expression for each weight. */
export function preferring(
  ...wishes: readonly (readonly [weight: number, expression: NodeSelectorRequirement])[]
): Partial<PodSpec> {
  return {
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: wishes.map(([weight, expression]) => ({
          weight,
          preference: { matchExpressions: [expression] },
        })),
      },
    },
  }
}

/** A DaemonSet whose pods ask for `requests`; they have the label `app: agent`. */
export function aDaemon(
  requests: Readonly<Record<string, string>>,
  spec: Partial<PodSpec> = {},
  name = 'agent',
): DaemonInput {
  return aDaemonOf({ containers: [{ name: 'agent', resources: { requests } }], ...spec }, name)
}

/** A DaemonSet with pods of this spec. */
export function aDaemonOf(spec: PodSpec, name = 'agent'): DaemonInput {
  return { name: `kube-system/${name}`, namespace: 'kube-system', labels: { app: name }, spec }
}

/** The claim's requirements on one key. */
export function requirementsOn(claim: NewClaim | undefined, key: string): readonly Requirement[] {
  return (claim?.requirements ?? []).filter((requirement) => requirement.key === key)
}

/** Names of pods in alphabetical order, for comparing regardless of order. */
export function podNames(pods: readonly Pod[]): readonly string[] {
  return pods.map((pod) => pod.metadata.name).toSorted()
}

/** Why each pod without a place has none, by pod name. */
export function failureTexts(result: SchedulingResult): Readonly<Record<string, string>> {
  return Object.fromEntries(
    result.failures.map(({ pod, reason }) => [pod.metadata.name, renderPodReason(reason)]),
  )
}

/** Where each pod with a place on a node went, by pod name. */
export function placedOn(result: SchedulingResult): Readonly<Record<string, string>> {
  return Object.fromEntries(result.placements.map(({ pod, node }) => [pod.metadata.name, node]))
}

/** A pod with the label `app`. */
export function anAppPod(app: string, spec: Partial<PodSpec> = {}, cpu = '100m'): Pod {
  const pod = aPod({ cpu }, spec)
  return { ...pod, metadata: { ...pod.metadata, labels: { app } } }
}

/** The pod as it is once it is bound. */
export function boundTo(node: string, pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, nodeName: node } }
}

/** A node that has no room left, in a zone. */
export function aFullNode(name: string, zone: string, nodeLabels: NodeInput['labels'] = {}): NodeInput {
  return aNode(name, { available: {}, labels: { [labels.zone]: zone, ...nodeLabels } })
}

/** A cluster of these nodes, where `pods` are bound to some of them. */
export function aCluster(nodes: readonly NodeInput[], pods: readonly Pod[] = []): TopologyInput {
  return {
    pods,
    nodes: new Map(
      nodes.map(({ name, labels: nodeLabels, taints }) => [
        name,
        { hostname: nodeLabels[labels.hostname] ?? name, labels: nodeLabels, taints, isCandidate: true },
      ]),
    ),
    namespaces: new Map([['default', {}]]),
  }
}

/** One hard spread constraint of skew 1 over `key` for the pods of `app`. */
export function spreading(
  key: string,
  app: string,
  rest: Partial<TopologySpreadConstraint> = {},
): Partial<PodSpec> {
  const constraint: TopologySpreadConstraint = {
    maxSkew: 1,
    topologyKey: key,
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app } },
    ...rest,
  }
  return { topologySpreadConstraints: [constraint] }
}

type PodAffinityKind = 'podAffinity' | 'podAntiAffinity'

/** Required affinity to, or anti-affinity against, the pods of `app`. */
export function requiringPods(
  kind: PodAffinityKind,
  key: string,
  app: string,
  rest: Partial<PodAffinityTerm> = {},
): Partial<PodSpec> {
  const term = { topologyKey: key, labelSelector: { matchLabels: { app } }, ...rest }
  return { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }
}

/** The same as a preference. */
export function preferringPods(kind: PodAffinityKind, key: string, app: string): Partial<PodSpec> {
  const podAffinityTerm = { topologyKey: key, labelSelector: { matchLabels: { app } } }
  return {
    affinity: {
      [kind]: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm }] },
    },
  }
}

/** How many pods of the new claims go where, by the values a claim allows for `key`, comma-joined. */
export function podsPerDomain(claims: readonly NewClaim[], key: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const claim of claims) {
    const domain = valuesOn(claim, key).join(',')
    counts[domain] = (counts[domain] ?? 0) + claim.pods.length
  }
  return counts
}

/** The values a claim lists for one key; none when it leaves the key open. */
export function valuesOn(claim: NewClaim | undefined, key: string): readonly string[] {
  return requirementsOn(claim, key).flatMap((requirement) => requirement.values ?? [])
}

export function anOffering(
  capacityType: string,
  pricePerHour: PricePerHour,
  zone = 'zone-1',
  rest: Partial<Offering> = {},
): Offering {
  return {
    requirements: [
      { key: labels.zone, operator: 'In', values: [zone] },
      { key: labels.capacityType, operator: 'In', values: [capacityType] },
    ],
    pricePerHour,
    available: true,
    ...rest,
  }
}

/** The type, sold in these ways alone; its requirements list what they offer. */
export function soldAs(type: InstanceType, ...offerings: readonly Offering[]): InstanceType {
  const offered = new Map<string, Set<string>>()
  for (const { key, values = [] } of offerings.flatMap((offering) => offering.requirements)) {
    offered.set(key, new Set([...(offered.get(key) ?? []), ...values]))
  }
  const kept = type.requirements.filter((requirement) => !offered.has(requirement.key))
  const listed = [...offered].map(([key, values]): Requirement => {
    return values.size === 0
      ? { key, operator: 'DoesNotExist' }
      : { key, operator: 'In', values: [...values] }
  })
  return { ...type, requirements: [...kept, ...listed], offerings }
}
