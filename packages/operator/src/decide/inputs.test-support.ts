/** Inputs of decisions: boring defaults, a test states only what matters to it. */
import {
  type InstanceType,
  labels,
  type NodePool,
  type Pod,
  type PodSpec,
  parseResources,
  wellKnownLabels,
} from '@tenon/api'
import type { ConsolidationQuestion, NodeInput, PoolInput, SchedulingInput } from '@tenon/engine'

export const is = (
  key: string,
  ...values: readonly string[]
): { readonly key: string; readonly operator: 'In'; readonly values: readonly string[] } => ({
  key,
  operator: 'In',
  values,
})

export function aType(cpu: number): InstanceType {
  const name = `type-${cpu}`
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.zone, 'zone-1', 'zone-2'),
      is(labels.os, 'linux'),
    ],
    offerings: ['zone-1', 'zone-2'].map((zone) => ({
      requirements: [is(labels.zone, zone), is(labels.capacityType, 'on-demand')],
      pricePerHour: cpu * 0.05,
      available: true,
    })),
    capacity: parseResources({ cpu: String(cpu), memory: `${cpu * 4}Gi`, pods: '110' }),
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

export const someTypes: readonly InstanceType[] = [2, 4, 8].map(aType)

export function aPool(name: string, instanceTypes: readonly InstanceType[] = someTypes): PoolInput {
  const nodePool: NodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [],
        },
      },
    },
  }
  return { nodePool, instanceTypes, usage: {} }
}

export function aPod(name: string, cpu: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name, labels: { app: name.slice(0, 1) } },
    spec: { containers: [{ name: 'app', resources: { requests: { cpu } } }], ...spec },
  }
}

export function aNode(name: string): NodeInput {
  return {
    name,
    labels: { [labels.zone]: 'zone-1', [labels.os]: 'linux' },
    taints: [],
    initialized: true,
    available: parseResources({ cpu: '4', memory: '16Gi', pods: '110' }),
    daemonRequests: {},
    usedHostPorts: [],
  }
}

export function anInput(pods: readonly Pod[], rest: Partial<SchedulingInput> = {}): SchedulingInput {
  return {
    pods,
    nodes: [],
    pools: [aPool('default')],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    policy: {
      preferences: 'Respect',
      minValues: 'Strict',
      wellKnownLabels: new Set(wellKnownLabels),
      maxInstanceTypes: 600,
    },
    ...rest,
  }
}

export const some = <T>(count: number, make: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => make(i))

/** A cluster of nodes that are hardly used, and whether some of them can go. */
export function aQuestion(count: number): {
  readonly input: SchedulingInput
  readonly question: ConsolidationQuestion
} {
  const nodes = some(count, (i) => ({
    ...aNode(`node-${i}`),
    available: parseResources({ cpu: '3', memory: '15Gi', pods: '109' }),
  }))
  const pods = some(count, (i) => aPod(`p-${i}`, '1', { nodeName: `node-${i}` }))
  return {
    input: {
      ...anInput(pods, {
        nodes,
        origins: new Map(pods.map(({ metadata }) => [metadata.uid ?? '', 'candidate'])),
      }),
    },
    question: {
      kind: 'consolidate',
      search: 'multi',
      candidates: nodes.map(({ name }, i) => ({
        node: name,
        nodePool: 'default',
        policy: 'WhenEmptyOrUnderutilized',
        capacityType: 'on-demand',
        instanceType: 'type-4',
        pricePerHour: 0.2,
        disruptionCost: 2,
        capacity: { cpu: 4000, nodes: 1 },
        pods: [`p-${i}`],
      })),
      budgets: new Map([['default', count]]),
      totals: new Map(),
      spotToSpot: false,
      unseenPools: [],
    },
  }
}
