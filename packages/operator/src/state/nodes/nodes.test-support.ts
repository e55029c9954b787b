/** Nodes, claims, pods and pools with boring defaults; a test states only what matters to it. */
import {
  apiVersionOf,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
  type PodSpec,
  type ResourceType,
} from '@tenon/api'

const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
const room = { cpu: '4', memory: '8Gi', pods: '110' }

type Labels = Readonly<Record<string, string>>

export interface SomeNode {
  readonly providerID?: string
  readonly pool?: string
  readonly labels?: Labels
  readonly capacity?: Readonly<Record<string, string>>
  readonly metadata?: Partial<Node['metadata']>
}

/** A Node; of a pool when one is given, then registered and initialized. */
export function aNode(name: string, { providerID, pool, capacity = room, ...more }: SomeNode = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      ...more.metadata,
      labels: { ...(pool !== undefined && managedLabels(pool)), ...more.labels },
    },
    ...(providerID !== undefined && { spec: { providerID } }),
    status: { capacity, allocatable: capacity },
  }
}

function managedLabels(pool: string): Labels {
  return {
    [labels.nodePool]: pool,
    [labels.instanceType]: 'medium',
    [labels.registered]: 'true',
    [labels.initialized]: 'true',
  }
}

export interface SomeClaim {
  readonly providerID?: string
  readonly pool?: string | undefined
  readonly labels?: Labels
  readonly capacity?: Readonly<Record<string, string>>
  readonly conditions?: NonNullable<NodeClaim['status']>['conditions']
  readonly metadata?: Partial<NodeClaim['metadata']>
}

/** A claim of pool `default`, launched when it has a provider ID. */
export function aClaim(name: string, options: SomeClaim = {}): NodeClaim {
  const { providerID, capacity = room, conditions, metadata } = options
  const pool = 'pool' in options ? options.pool : 'default'
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name,
      uid: `uid-${name}`,
      ...metadata,
      labels: { ...(pool !== undefined && { [labels.nodePool]: pool }), ...options.labels },
    },
    spec: { nodeClassRef, requirements: [] },
    status: {
      ...(providerID !== undefined && { providerID, capacity, allocatable: capacity }),
      ...(conditions !== undefined && { conditions }),
    },
  }
}

export function aPool(name = 'default', metadata: Partial<NodePool['metadata']> = {}): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name, uid: `uid-${name}`, generation: 1, ...metadata },
    spec: { template: { spec: { nodeClassRef, requirements: [] } } },
  }
}

/** A running pod of one core, on a node when one is given. */
export function aPod(
  name: string,
  nodeName?: string,
  spec: Partial<PodSpec> = {},
  metadata: Partial<Pod['metadata']> = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, ...metadata },
    spec: {
      containers: [{ name: 'app', resources: { requests: { cpu: '1' } } }],
      ...(nodeName !== undefined && { nodeName }),
      ...spec,
    },
    status: { phase: nodeName === undefined ? 'Pending' : 'Running' },
  }
}

/** An object of this type as the API server sends it, whatever is wrong with it. */
export function asSent<T extends KubeObject>(type: ResourceType<T>, object: object): T {
  return JSON.parse(JSON.stringify({ apiVersion: apiVersionOf(type), kind: type.kind, ...object })) as T
}
