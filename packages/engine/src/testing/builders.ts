/** Builders for tests and benchmarks: boring defaults, a test states only what matters to it. */
import {
  type InstanceType,
  labels,
  type NodePool,
  type Pod,
  type PodSpec,
  parseResources,
  wellKnownLabels,
} from '@tenon/api'
import type { NodeInput, PoolInput, SchedulingInput, SchedulingPolicy } from '../snapshot/input.ts'

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
