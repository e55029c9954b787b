/** Small clusters as snapshots, made by hand or at random. */
import {
  annotations,
  formatResources,
  type InstanceType,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
  type Pod,
  type PodSpec,
  parseResources,
} from '@tenon/api'
import { defaultSettings, emptyMemory } from '@tenon/operator'
import type { Random } from '@tenon/runtime'
import type { Snapshot } from '../snapshot/snapshot.ts'

const nodeClassType = {
  group: 'my.cloud',
  version: 'v1',
  kind: 'MyNodeClass',
  plural: 'mynodeclasses',
  namespaced: false,
} as const

const zones = ['zone-a', 'zone-b', 'zone-c'] as const
const takenAtMs = Date.parse('2026-11-26T12:00:00Z')
const takenAt = '2026-11-26T11:00:00Z'

const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })

/** A type of 4 GiB a core at 5 cents a core and hour, in every zone unless told otherwise. */
export function aType(name: string, cpu: number, options: Partial<TypeOptions> = {}): InstanceType {
  const { in: offered = zones, price = cpu * 0.05, available = true } = options
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, 'amd64'),
      is(labels.os, 'linux'),
      is(labels.zone, ...offered),
      is(labels.capacityType, 'on-demand'),
    ],
    offerings: offered.map((zone) => ({
      requirements: [is(labels.zone, zone), is(labels.capacityType, 'on-demand')],
      pricePerHour: price,
      available,
    })),
    capacity: parseResources({ cpu: String(cpu), memory: `${4 * cpu}Gi`, pods: '110' }),
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

interface TypeOptions {
  readonly in: readonly string[]
  readonly price: number | undefined
  readonly available: boolean
}

/** A NodePool that is ready. */
export function aPool(
  name: string,
  spec: Partial<NodePool['spec']> = {},
  template: Partial<NodePool['spec']['template']['spec']> = {},
): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name, uid: `pool-${name}`, creationTimestamp: takenAt, generation: 1 },
    spec: {
      disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
      ...spec,
      template: {
        ...spec.template,
        spec: {
          nodeClassRef: { group: nodeClassType.group, kind: nodeClassType.kind, name: 'default' },
          requirements: [],
          ...template,
        },
      },
    },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: takenAt },
      ],
    },
  }
}

/** A pod that kube-scheduler finds no node for. */
export function aPending(
  name: string,
  requests: Readonly<Record<string, string>>,
  spec: Partial<PodSpec> = {},
  workload?: string,
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `pod-${name}`,
      creationTimestamp: takenAt,
      labels: { app: workload ?? name },
      ...(workload !== undefined && {
        ownerReferences: [
          {
            apiVersion: 'apps/v1',
            kind: 'ReplicaSet',
            name: `${workload}-7d9f`,
            uid: `rs-${workload}`,
            controller: true,
          },
        ],
      }),
    },
    spec: { containers: [{ name: 'app', resources: { requests } }], ...spec },
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
    },
  }
}

/** A node that belongs to no NodePool and takes pods. */
export function aNode(
  name: string,
  cpu: string,
  nodeLabels: Readonly<Record<string, string>> = {},
  taints: NonNullable<Node['spec']>['taints'] = [],
): Node {
  const amounts = { cpu, memory: '16Gi', pods: '110' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: `node-${name}`,
      creationTimestamp: takenAt,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        [labels.zone]: zones[0],
        ...nodeLabels,
      },
    },
    spec: { providerID: `my://${name}`, taints },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastTransitionTime: takenAt },
      ],
    },
  }
}

/** A node of a NodePool, with its claim. */
export function aClaimedNode(name: string, pool: NodePool, type: InstanceType): readonly KubeObject[] {
  const nodeLabels = {
    [labels.nodePool]: pool.metadata.name,
    [labels.instanceType]: type.name,
    [labels.zone]: zones[0],
    [labels.capacityType]: 'on-demand',
    [labels.os]: 'linux',
    [labels.arch]: 'amd64',
    [`${nodeClassType.group}/${nodeClassType.kind.toLowerCase()}`]: 'default',
  }
  const amounts = formatResources(type.capacity)
  const isTrue = (condition: string) => ({
    type: condition,
    status: 'True' as const,
    reason: condition,
    message: '',
    lastTransitionTime: takenAt,
  })
  const node: Node = {
    ...aNode(name, '1'),
    metadata: {
      name,
      uid: `node-${name}`,
      creationTimestamp: takenAt,
      labels: {
        ...nodeLabels,
        [labels.hostname]: name,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
      },
    },
    status: { capacity: amounts, allocatable: amounts, conditions: [isTrue('Ready')] },
  }
  const claim: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name: `claim-${name}`,
      uid: `claim-${name}`,
      creationTimestamp: takenAt,
      labels: nodeLabels,
      annotations: {
        [annotations.nodePoolHash]: nodePoolHash(pool),
        [annotations.nodePoolHashVersion]: nodePoolHashVersion,
      },
      ownerReferences: [
        {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodePool',
          name: pool.metadata.name,
          uid: pool.metadata.uid ?? '',
        },
      ],
    },
    spec: { nodeClassRef: pool.spec.template.spec.nodeClassRef, requirements: [] },
    status: {
      providerID: `my://${name}`,
      nodeName: name,
      capacity: amounts,
      allocatable: amounts,
      conditions: ['Launched', 'Registered', 'Initialized', 'Ready'].map(isTrue),
    },
  }
  return [node, claim]
}

/** A pod that runs on a node. */
export function aRunning(pod: Pod, node: string): Pod {
  return {
    ...pod,
    spec: { ...pod.spec, nodeName: node },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }
}

/** A snapshot in which every NodePool may buy the same. */
export function aSnapshot(objects: readonly KubeObject[], instanceTypes: readonly InstanceType[]): Snapshot {
  const pools = objects.filter(({ kind }) => kind === 'NodePool').map(({ metadata }) => metadata.name)
  return {
    takenAtMs,
    program: 'test',
    origin: { kind: 'controller', identity: 'test', isLeading: true },
    cloud: {
      name: 'my-cloud',
      nodeClasses: [nodeClassType],
      wellKnownLabels: [],
      repairPolicies: [],
      priceUnit: 'EUR',
    },
    settings: defaultSettings,
    objects: [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels: { team: 'a' } } },
      {
        apiVersion: `${nodeClassType.group}/${nodeClassType.version}`,
        kind: nodeClassType.kind,
        metadata: { name: 'default' },
      },
      ...objects,
    ],
    catalogues: [{ nodePools: pools, instanceTypes }],
    memory: { ...emptyMemory, groupVersions: versionsOfGroups(objects) },
    nodeDecisions: [],
    journal: [],
  }
}

function versionsOfGroups(objects: readonly KubeObject[]): readonly string[] {
  const groups = objects.filter(({ kind }) => kind === 'PodGroup')
  return [...new Set(groups.map(({ apiVersion }) => apiVersion))]
}

/** A PodGroup of Kubernetes. */
export function aPodGroup(
  name: string,
  minCount: number,
  spec: Readonly<Record<string, unknown>> = {},
): KubeObject {
  const group = {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name, namespace: 'default', uid: `group-${name}`, creationTimestamp: takenAt },
    spec: { schedulingPolicy: { gang: { minCount } }, ...spec },
  }
  return group
}

/** Draws what a test needs. */
export class Draw {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  below(count: number): number {
    return this.#random.uint32() % count
  }

  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }
}

/** A cluster in which some pods wait, for all kinds of reasons. */
export function randomCluster(draw: Draw): Snapshot {
  const types = Array.from({ length: 1 + draw.below(5) }, (_, at) =>
    aType(`type-${at}`, 2 ** draw.below(5), {
      in: zones
        .filter(() => draw.chance(70))
        .concat(zones[0])
        .filter((zone, i, all) => all.indexOf(zone) === i),
      ...(draw.chance(10) && { price: undefined }),
      available: draw.chance(95),
    }),
  )
  const pools = Array.from({ length: 1 + draw.below(3) }, (_, at) => randomPool(draw, `pool-${at}`))
  const nodes = Array.from({ length: draw.below(4) }, (_, at) =>
    aNode(
      `node-${at}`,
      draw.of(['1', '2', '4']),
      { [labels.zone]: draw.of(zones) },
      draw.chance(30) ? [aTaint(draw)] : [],
    ),
  )
  const pods = Array.from({ length: 1 + draw.below(5) }, (_, at) => randomPods(draw, `app-${at}`)).flat()
  return aSnapshot([...pools, ...nodes, ...pods], types)
}

function aTaint(draw: Draw) {
  return {
    key: draw.of(['dedicated', 'gpu']),
    value: draw.of(['a', 'b']),
    effect: draw.of(['NoSchedule', 'NoExecute'] as const),
  }
}

function randomPool(draw: Draw, name: string): NodePool {
  const requirements = [
    ...(draw.chance(40) ? [is(labels.zone, draw.of(zones))] : []),
    ...(draw.chance(15)
      ? [{ key: labels.zone, operator: 'NotIn' as const, values: [draw.of(zones), draw.of(zones)] }]
      : []),
    ...(draw.chance(20) ? [is(labels.instanceType, `type-${draw.below(5)}`)] : []),
    ...(draw.chance(15) ? [is('team', draw.of(['red', 'blue']))] : []),
  ]
  const taints = Array.from({ length: draw.chance(50) ? 1 + draw.below(2) : 0 }, () => aTaint(draw))
  const pool = aPool(
    name,
    {
      ...(draw.chance(40) && {
        limits: draw.chance(30) ? { nodes: String(draw.below(2)) } : { cpu: String(draw.below(12)) },
      }),
      ...(draw.chance(30) && { weight: 1 + draw.below(100) }),
    },
    { requirements, ...(taints.length > 0 && { taints }) },
  )
  if (draw.chance(85)) return pool
  const conditions = [
    {
      type: 'Ready',
      status: 'False' as const,
      reason: 'NodeClassNotReady',
      message: 'the node class is not ready',
      lastTransitionTime: takenAt,
    },
  ]
  return { ...pool, status: { conditions } }
}

function randomPods(draw: Draw, workload: string): readonly Pod[] {
  const own = { matchLabels: { app: workload } }
  const spec: Partial<PodSpec> = {
    ...(draw.chance(25) && {
      nodeSelector: { [draw.of(['team', 'disk', labels.zone])]: draw.of(['red', 'ssd', zones[1]]) },
    }),
    ...(draw.chance(20) && {
      tolerations: [{ key: draw.of(['dedicated', 'gpu']), operator: 'Equal', value: draw.of(['a', 'b']) }],
    }),
    ...(draw.chance(20) && {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: draw.of([labels.zone, 'kubernetes.io/hostname', 'rack']),
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: own,
        },
      ],
    }),
    ...(draw.chance(35) && {
      affinity: {
        ...(draw.chance(50) && {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                {
                  matchExpressions: [
                    {
                      key: draw.of([labels.zone, 'team', 'disk']),
                      operator: draw.of(['In', 'NotIn'] as const),
                      values: [draw.of([zones[1], 'red', 'ssd'])],
                    },
                    ...(draw.chance(30)
                      ? [{ key: labels.zone, operator: 'In' as const, values: [draw.of(zones)] }]
                      : []),
                  ],
                },
              ],
            },
          },
        }),
        ...(draw.chance(40) && {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              {
                labelSelector: draw.chance(60)
                  ? own
                  : { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
                topologyKey: draw.of([labels.zone, 'kubernetes.io/hostname']),
              },
            ],
          },
        }),
        ...(draw.chance(20) && {
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              {
                labelSelector: draw.chance(50) ? own : { matchLabels: { app: 'app-0' } },
                topologyKey: labels.zone,
              },
            ],
          },
        }),
      },
    }),
  }
  const requests = {
    cpu: draw.of(['100m', '700m', '1500m', '6', '40']),
    memory: draw.of(['64Mi', '1Gi', '9Gi', '100Gi']),
  }
  const replicas = draw.chance(40) ? 1 + draw.below(4) : 1
  const grouped = draw.chance(70)
  return Array.from({ length: replicas }, (_, at) =>
    aPending(`${workload}-${at}`, requests, spec, grouped ? workload : undefined),
  )
}
