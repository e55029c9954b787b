/** PodGroups, their pods, and NodePools for them. */
import {
  kinds,
  labels,
  type Node,
  type NodePool,
  type NewObject,
  type Pod,
  type PodGroup,
  podGroupKinds,
  type PodSpec,
  type ResourceType,
} from '@tenon/api'

/** A label of nodes that pods select: each scenario has its own nodes. */
export const scenarioLabel = 'gangs.test/scenario'
export const namespace = 'default'
export const nodeClassName = 'gangs'

/** The version that kube-apiserver 1.36 serves. */
export const podGroupKind = podGroupKinds.kubernetes.find(
  ({ version }) => version === 'v1alpha2',
) as ResourceType<PodGroup>

export interface PoolParts {
  /** Value of the nodes' label {@link scenarioLabel}; default: the pool's name. */
  readonly scenario?: string
  /** Instance types; default: those with 8 CPU. */
  readonly types?: readonly string[]
  readonly zones?: readonly string[]
  readonly limits?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  readonly disruption?: NodePool['spec']['disruption']
  readonly requirements?: NonNullable<NodePool['spec']['template']['spec']['requirements']>
}

/** A NodePool with on-demand nodes, which are not disrupted by default. */
export function pool(name: string, parts: PoolParts = {}): NewObject<NodePool> {
  const {
    scenario = name,
    types = ['c-8x-amd64-linux'],
    zones = ['test-zone-d'],
    limits,
    requirements,
  } = parts
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      disruption: parts.disruption ?? { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
      ...(limits && { limits }),
      template: {
        metadata: { labels: { [scenarioLabel]: scenario, ...parts.labels } },
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: nodeClassName },
          requirements: [
            { key: labels.os, operator: 'In', values: ['linux'] },
            { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
            { key: labels.instanceType, operator: 'In', values: types },
            { key: labels.zone, operator: 'In', values: zones },
            ...(requirements ?? []),
          ],
        },
      },
    },
  }
}

export function podGroup(
  name: string,
  minCount: number,
  more: Readonly<Record<string, unknown>> = {},
): NewObject<PodGroup> {
  return {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name, namespace },
    spec: { schedulingPolicy: { gang: { minCount } }, ...more },
  }
}

export interface PodParts {
  /** The PodGroup it belongs to. */
  readonly group?: string
  /** The scenario whose nodes it may run on. */
  readonly scenario: string
  readonly cpu: string
  readonly spec?: Partial<PodSpec>
}

export function pod(name: string, { group, scenario, cpu, spec = {} }: PodParts): NewObject<Pod> {
  const { nodeSelector, containers, ...rest } = spec
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: { [scenarioLabel]: scenario },
    },
    spec: {
      terminationGracePeriodSeconds: 0,
      nodeSelector: { [scenarioLabel]: scenario, ...nodeSelector },
      ...(group !== undefined && { schedulingGroup: { podGroupName: group } }),
      ...rest,
      containers: containers ?? [
        {
          name: 'main',
          image: 'registry.k8s.io/pause:3.10',
          resources: { requests: { cpu, memory: '64Mi' } },
        },
      ],
    },
  }
}

export interface NodeParts {
  /** Value of the node's scenario label. */
  readonly scenario: string
  readonly cpu: string
  readonly labels?: Readonly<Record<string, string>>
  /** Without a kubelet: it is Ready until the heartbeat times out, and deleted pods stay. */
  readonly isUntended?: boolean
}

/** A Node that no NodePool launched. */
export function foreignNode(name: string, parts: NodeParts): NewObject<Node> {
  const { scenario, cpu, isUntended = false } = parts
  const resources = { cpu, memory: '16Gi', pods: '110' }
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' } as const
  return {
    apiVersion: kinds.node.version,
    kind: 'Node',
    metadata: {
      name,
      labels: {
        [scenarioLabel]: scenario,
        [labels.os]: 'linux',
        [labels.hostname]: name,
        ...parts.labels,
      },
      annotations: isUntended ? {} : { 'kwok.x-k8s.io/node': 'fake' },
    },
    spec: {},
    status: {
      capacity: resources,
      allocatable: resources,
      ...(isUntended && { conditions: [ready] }),
    },
  }
}
