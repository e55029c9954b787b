/** A recording of an hour. */
import type { NodePool, Pod } from '@tenon/api'
import type { TraceRecord } from '@tenon/ask'

const startMs = Date.UTC(2026, 0, 1)
const minuteMs = 60_000

export const recordedPool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default', uid: 'pool', generation: 1 },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'example.com', kind: 'ExampleNodeClass', name: 'default' },
        requirements: [],
        expireAfter: 'Never',
      },
    },
    disruption: { consolidateAfter: '1m' },
  },
}

const shape: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web',
    namespace: 'default',
    labels: { app: 'web' },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'set', controller: true },
    ],
  },
  spec: { containers: [{ name: 'app', image: 'recorded', resources: { requests: { cpu: '1' } } }] },
}

/** An hour of one node of four cores, on which two pods run, and a third one for half of it. */
export const anHour: readonly TraceRecord[] = [
  { kind: 'session', atMs: startMs, program: 'tenon test', source: 'https://example.com' },
  { kind: 'object', atMs: startMs, object: recordedPool },
  {
    kind: 'nodeCame',
    atMs: startMs - minuteMs,
    node: 'a',
    id: 'node-a',
    labels: {
      'karpenter.sh/nodepool': 'default',
      'karpenter.sh/capacity-type': 'on-demand',
      'node.kubernetes.io/instance-type': 'm.4',
      'topology.kubernetes.io/zone': 'zone-a',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/os': 'linux',
    },
    capacity: { cpu: '4', memory: '16Gi', pods: '110' },
    allocatable: { cpu: '4', memory: '16Gi', pods: '110' },
    pricePerHour: 0.2,
  },
  { kind: 'shape', shape: 0, pod: shape },
  { kind: 'podCame', atMs: startMs - minuteMs, pod: 0, shape: 0, name: 'web-0', id: '0', node: 'a' },
  { kind: 'podCame', atMs: startMs - minuteMs, pod: 1, shape: 0, name: 'web-1', id: '1', node: 'a' },
  { kind: 'alive', atMs: startMs },
  { kind: 'podCame', atMs: startMs + 10 * minuteMs, pod: 2, shape: 0, name: 'web-2', id: '2' },
  { kind: 'podEnded', atMs: startMs + 40 * minuteMs, pod: 2 },
  { kind: 'alive', atMs: startMs + 60 * minuteMs },
]
