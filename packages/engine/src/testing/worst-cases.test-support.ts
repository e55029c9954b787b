/** Inputs whose size is in one object rather than in the number of objects: what a user can write into a pod or a node. */
import {
  type InstanceType,
  labels,
  type NodePool,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  parseResources,
  type Pod,
  type PodSpec,
  wellKnownLabels,
} from '@tenon/api'
import type { NodeInput, SchedulingInput } from '../input/input.ts'

const some = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))

const is = (key: string, ...values: readonly string[]) => ({ key, operator: 'In' as const, values })

function aType(cpu: number): InstanceType {
  const name = `type-${cpu}`
  const zones = ['zone-1', 'zone-2', 'zone-3']
  return {
    name,
    requirements: [is(labels.instanceType, name), is(labels.zone, ...zones), is(labels.os, 'linux')],
    offerings: zones.map((zone) => ({
      requirements: [is(labels.zone, zone), is(labels.capacityType, 'on-demand')],
      pricePerHour: cpu * 0.05,
      available: true,
    })),
    capacity: parseResources({ cpu: String(cpu), memory: `${cpu * 4}Gi`, pods: '110' }),
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

const nodePool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [],
      },
    },
  },
}

function aNode(name: string, zone: string): NodeInput {
  return {
    name,
    labels: { [labels.hostname]: name, [labels.zone]: zone, [labels.os]: 'linux' },
    taints: [],
    initialized: true,
    available: parseResources({ cpu: '4', memory: '16Gi', pods: '110' }),
    daemonRequests: {},
    usedHostPorts: [],
  }
}

function aPod(index: number, spec: Partial<PodSpec>, podLabels: Readonly<Record<string, string>> = {}): Pod {
  const name = `p-${String(index).padStart(5, '0')}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name, labels: { app: 'a', ...podLabels } },
    spec: { containers: [{ name: 'app', resources: { requests: { cpu: '500m' } } }], ...spec },
  }
}

function inputOf(pods: readonly Pod[]): SchedulingInput {
  const nodes = some(20, (i) => aNode(`node-${i}`, `zone-${1 + (i % 3)}`))
  return {
    pods,
    nodes,
    pools: [{ nodePool, instanceTypes: [2, 4, 8, 16].map(aType), usage: {} }],
    daemons: [],
    topology: {
      pods: [],
      nodes: new Map(
        nodes.map(({ name, labels: own }) => [
          name,
          { hostname: name, labels: own, taints: [], isCandidate: true },
        ]),
      ),
      namespaces: new Map([['default', {}]]),
    },
    policy: {
      preferences: 'Respect',
      minValues: 'Strict',
      wellKnownLabels: new Set(wellKnownLabels),
      maxInstanceTypes: 600,
    },
  }
}

const required = (...nodeSelectorTerms: readonly NodeSelectorTerm[]): Partial<PodSpec> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
})

const expressions = (...matchExpressions: readonly NodeSelectorRequirement[]): Partial<PodSpec> =>
  required({ matchExpressions })

const notIn = (key: string, values: readonly string[]): NodeSelectorRequirement => ({
  key,
  operator: 'NotIn',
  values,
})

/** One of the names: what the pod with an index asks for. */
export const worstCases: Readonly<Record<string, (index: number) => Pod>> = {
  plain: (index) => aPod(index, {}),
  'NotIn with 20,000 distinct values a pod': (index) =>
    aPod(
      index,
      expressions(
        notIn(
          labels.zone,
          some(20_000, (i) => `v-${index}-${i}`),
        ),
      ),
    ),
  'NotIn with 20,000 distinct values of a custom label': (index) =>
    aPod(
      index,
      expressions(
        notIn(
          'example.com/kind',
          some(20_000, (i) => `v-${index}-${i}`),
        ),
      ),
    ),
  'In with 20,000 distinct values a pod': (index) =>
    aPod(index, expressions(is(labels.zone, 'zone-1', ...some(20_000, (i) => `v-${index}-${i}`)))),
  'In with 20,000 host names that nobody has': (index) =>
    aPod(index, expressions(is(labels.hostname, ...some(20_000, (i) => `host-${index}-${i}`)))),
  '200 terms of which the last is met': (index) =>
    aPod(
      index,
      required(...some(199, (i) => ({ matchExpressions: [is(labels.zone, `v-${index}-${i}`)] })), {
        matchExpressions: [is(labels.zone, 'zone-2')],
      }),
    ),
  '200 terms of which none is met': (index) =>
    aPod(index, required(...some(200, (i) => ({ matchExpressions: [is(labels.zone, `v-${index}-${i}`)] })))),
  '200 preferred terms': (index) =>
    aPod(index, {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: some(200, (i) => ({
            weight: 1 + (i % 100),
            preference: { matchExpressions: [is(labels.zone, `v-${index}-${i}`)] },
          })),
        },
      },
    }),
  '50 spreads over zones': (index) =>
    aPod(index, {
      topologySpreadConstraints: some(50, (i) => ({
        maxSkew: 1 + i,
        topologyKey: i % 2 === 0 ? labels.zone : labels.hostname,
        whenUnsatisfiable: 'DoNotSchedule' as const,
        labelSelector: { matchLabels: { app: 'a', [`own-${i}`]: `${index}` } },
      })),
    }),
  '50 soft spreads': (index) =>
    aPod(index, {
      topologySpreadConstraints: some(50, (i) => ({
        maxSkew: 1 + i,
        topologyKey: i % 2 === 0 ? labels.zone : labels.hostname,
        whenUnsatisfiable: 'ScheduleAnyway' as const,
        labelSelector: { matchLabels: { app: 'a', [`own-${i}`]: `${index}` } },
      })),
    }),
  '1 MB of affinity to pods': (index) =>
    aPod(index, {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: some(1000, (i) => ({
            topologyKey: labels.hostname,
            labelSelector: {
              matchExpressions: [
                {
                  key: 'app',
                  operator: 'In',
                  values: some(40, (j) => `a-rather-long-value-${index}-${i}-${j}`),
                },
              ],
            },
          })),
        },
      },
    }),
  '1 MB of preferred affinity to pods': (index) =>
    aPod(index, {
      affinity: {
        podAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: some(1000, (i) => ({
            weight: 1 + (i % 100),
            podAffinityTerm: {
              topologyKey: labels.zone,
              labelSelector: {
                matchExpressions: [
                  {
                    key: 'app',
                    operator: 'In',
                    values: some(40, (j) => `a-rather-long-value-${index}-${i}-${j}`),
                  },
                ],
              },
            },
          })),
        },
      },
    }),
  '1 MB of affinity to nodes': (index) =>
    aPod(
      index,
      expressions(
        ...some(1000, (i) =>
          notIn(
            `example.com/key-${i}`,
            some(40, (j) => `value-${index}-${i}-${j}`),
          ),
        ),
      ),
    ),
  '1 MB of labels': (index) =>
    aPod(index, {}, Object.fromEntries(some(10_000, (i) => [`key-${i}`, `value-${index}-${i}`]))),
  '10,000 tolerations': (index) =>
    aPod(index, {
      tolerations: some(10_000, (i) => ({ key: `key-${index}-${i}`, operator: 'Exists' as const })),
    }),
  '1,000 containers': (index) =>
    aPod(index, {
      containers: some(1000, (i) => ({ name: `c-${i}`, resources: { requests: { cpu: '1m' } } })),
    }),
  '1,000 host ports': (index) =>
    aPod(index, {
      containers: [
        {
          name: 'c',
          resources: { requests: { cpu: '100m' } },
          ports: some(1000, (i) => ({ containerPort: i + 1, hostPort: 1 + ((index * 1000 + i) % 60_000) })),
        },
      ],
    }),
}

/** Pods of which no two have the same requests, labels and constraints. */
export function differentShapes(pods: number): SchedulingInput {
  const rules: readonly ((index: number) => Partial<PodSpec>)[] = [
    () => ({}),
    (i) => ({ nodeSelector: { [labels.zone]: `zone-${1 + (i % 3)}` } }),
    (i) => ({ tolerations: [{ key: `team-${i}`, operator: 'Exists' }] }),
    (i) => ({
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: labels.zone,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { own: `own-${i}` } },
        },
      ],
    }),
  ]
  const make = (i: number) => {
    const requests = { cpu: `${100 + (i % 1500)}m`, memory: `${128 + ((i * 37) % 4096)}Mi` }
    const rule = rules[i % rules.length]?.(i)
    return aPod(i, { ...rule, containers: [{ name: 'app', resources: { requests } }] }, { own: `own-${i}` })
  }
  return inputOf(some(pods, make))
}

/** A cluster of 20 nodes and pods of one kind. */
export function worstCase(name: string, pods: number): SchedulingInput {
  const make = worstCases[name]
  if (make === undefined) throw new Error(`no worst case is named ${name}`)
  return inputOf(some(pods, make))
}
