/** Nodes and pods for tests. */
import type { Node, ObjectMeta, Pod, PodSpec, Taint } from '@tenon/api'

export const startMs = Date.parse('2026-01-01T00:00:00Z')

export interface NodeFields {
  readonly cpu?: string
  readonly memory?: string
  readonly pods?: string
  readonly zone?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
  readonly capacity?: Readonly<Record<string, string>>
  readonly allocatable?: Readonly<Record<string, string>>
  readonly unschedulable?: boolean
  readonly isReady?: boolean
  readonly annotations?: Readonly<Record<string, string>>
}

/** A node that has been ready for an hour. */
export function aNode(name: string, fields: NodeFields = {}): Node {
  const { cpu = '4', memory = '8Gi', pods: podLimit = '110', zone = 'a', isReady = true } = fields
  const amounts = { cpu, memory, pods: podLimit }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: `uid-${name}`,
      labels: {
        'kubernetes.io/hostname': name,
        'topology.kubernetes.io/zone': zone,
        ...fields.labels,
      },
      ...(fields.annotations !== undefined && { annotations: fields.annotations }),
      creationTimestamp: new Date(startMs - 3_600_000).toISOString(),
    },
    spec: {
      providerID: `cloud://${name}`,
      ...(fields.taints !== undefined && { taints: fields.taints }),
      ...(fields.unschedulable !== undefined && { unschedulable: fields.unschedulable }),
    },
    status: {
      capacity: { ...amounts, ...fields.capacity },
      allocatable: { ...amounts, ...fields.allocatable },
      conditions: [
        {
          type: 'Ready',
          status: isReady ? 'True' : 'False',
          lastTransitionTime: new Date(startMs - 3_000_000).toISOString(),
        },
      ],
    },
  }
}

export interface PodFields {
  readonly cpu?: string
  readonly memory?: string
  readonly nodeName?: string
  /** Name of its ReplicaSet; none = it stands alone. */
  readonly owner?: string
  readonly ownerKind?: string
  readonly ageMs?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: Partial<PodSpec>
  readonly metadata?: Partial<ObjectMeta>
}

/** A pod of ten minutes; one without a node is one that the scheduler found no place for. */
export function aPod(name: string, fields: PodFields = {}): Pod {
  const { cpu, memory, nodeName, owner, ownerKind = 'ReplicaSet', ageMs = 600_000 } = fields
  const requests = { ...(cpu !== undefined && { cpu }), ...(memory !== undefined && { memory }) }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      labels: { app: owner ?? name, ...fields.labels },
      ...(fields.annotations !== undefined && { annotations: fields.annotations }),
      creationTimestamp: new Date(startMs - ageMs).toISOString(),
      ...(owner !== undefined && {
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: ownerKind, name: owner, uid: `uid-of-${owner}`, controller: true },
        ],
      }),
      ...fields.metadata,
    },
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests } }],
      ...(nodeName !== undefined && { nodeName }),
      ...fields.spec,
    },
    status:
      nodeName === undefined
        ? {
            phase: 'Pending',
            conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
          }
        : { phase: 'Running' },
  }
}

/** `count` pods of one ReplicaSet. */
export function pods(owner: string, count: number, fields: PodFields = {}): Pod[] {
  return Array.from({ length: count }, (_, index) => aPod(`${owner}-${index}`, { owner, ...fields }))
}
