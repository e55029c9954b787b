/** A snapshot with one NodePool, a node of its own, and one that nobody knows the price of. */
import type { KubeObject, Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import { defaultSettings, emptyMemory } from '@tenon/operator'

const nodeLabels = {
  'karpenter.sh/nodepool': 'web',
  'node.kubernetes.io/instance-type': 'small',
  'topology.kubernetes.io/zone': 'z1',
  'karpenter.sh/capacity-type': 'on-demand',
}

function aNode(name: string, labels: Readonly<Record<string, string>>): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels, creationTimestamp: '2026-11-26T11:00:00Z' },
    spec: { providerID: `x://${name}` },
    status: {
      allocatable: { cpu: '2', memory: '4Gi' },
      nodeInfo: { kubeletVersion: 'v1.36.0' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

export function aPod(name: string, node: string | undefined, more: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'shop',
      labels: { app: 'web' },
      creationTimestamp: '2026-11-26T11:58:00Z',
      ...more,
    },
    spec: {
      ...(node !== undefined && { nodeName: node }),
      containers: [{ name: 'c', resources: { requests: { cpu: '500m', memory: '1Gi' } } }],
    },
    status: { phase: node === undefined ? 'Pending' : 'Running' },
  }
}

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'web-1', labels: nodeLabels, creationTimestamp: '2026-11-26T11:00:00Z' },
  spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'c' }, requirements: [] },
  status: { providerID: 'x://n1', nodeName: 'n1', conditions: [] },
}

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'web', creationTimestamp: '2026-11-25T12:00:00Z' },
  spec: { template: { spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'c' }, requirements: [] } } },
  status: { nodes: 1 },
}

const offering = {
  requirements: [
    { key: 'topology.kubernetes.io/zone', operator: 'In' as const, values: ['z1'] },
    { key: 'karpenter.sh/capacity-type', operator: 'In' as const, values: ['on-demand'] },
  ],
  pricePerHour: 0.05,
  available: true,
}

export const snapshot: Snapshot = {
  takenAtMs: Date.parse('2026-11-26T12:00:00Z'),
  program: 'test',
  origin: { kind: 'controller', identity: 'a', isLeading: true },
  cloud: { name: 'x', nodeClasses: [], wellKnownLabels: [], repairPolicies: [], priceUnit: 'EUR' },
  settings: defaultSettings,
  objects: [
    aNode('n1', nodeLabels),
    aNode('strange', {}),
    claim,
    pool,
    aPod('a', 'n1'),
    aPod('b', 'n1', { annotations: { 'tenon.sh/note': '🦊: "x"' } }),
    aPod('waits', undefined, { labels: { app: 'db' } }),
    aPod('ended', 'n1', { namespace: 'jobs' }),
  ] satisfies readonly KubeObject[],
  catalogues: [
    {
      nodePools: ['web'],
      instanceTypes: [
        {
          name: 'small',
          requirements: [],
          offerings: [offering],
          capacity: {},
          overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
        },
      ],
    },
  ],
  memory: emptyMemory,
  journal: [],
  nodeDecisions: [
    {
      node: 'n1',
      nodeClaim: 'web-1',
      nodePool: 'web',
      cause: 'policy',
      message: 'Not yet',
      at: '2026-11-26T12:00:00Z',
    },
  ],
}
