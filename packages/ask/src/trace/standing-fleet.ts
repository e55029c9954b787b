/** The initial nodes and pods of a recording, as objects. */
import {
  karpenterKinds,
  type KubeObject,
  labels,
  nodeClassLabel,
  type NodeClaim,
  type Node,
  type NodePool,
  ownValue,
  type Pod,
  terminationFinalizer,
} from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { playIdAnnotation } from '../play/play.ts'
import type { Recording } from './recording.ts'
import type { NodeCameRecord } from './records.ts'

/**
 * The initial objects of a replay: nodes of NodePools with their claims, and pods on their nodes. Other nodes,
 * such as those of another autoscaler, are left out; their pods are pending.
 */
export function standingFleet(
  { nodes, pods, startMs }: Pick<Recording, 'nodes' | 'pods' | 'startMs'>,
  pools: readonly NodePool[],
): readonly KubeObject[] {
  const now = rfc3339(startMs)
  const poolOf = (node: NodeCameRecord): NodePool | undefined => {
    const name = ownValue(node.labels, labels.nodePool)
    return pools.find(({ metadata }) => metadata.name === name)
  }
  const kept = nodes.flatMap((node) => {
    const pool = poolOf(node)
    return pool === undefined ? [] : [{ node, pool }]
  })
  const present = new Set(kept.map(({ node }) => node.node))
  return [
    ...kept.flatMap(({ node, pool }) => [claimOf(node, pool, now), nodeOf(node, now)]),
    ...pods.map(({ id, pod, node }) =>
      podOf({ id, pod, now, node: present.has(node ?? '') ? node : undefined }),
    ),
  ]
}

const providerIdOf = ({ node }: NodeCameRecord): string => `recorded://${node}`

function condition(
  type: string,
  now: string,
): NonNullable<NonNullable<NodeClaim['status']>['conditions']>[number] {
  return { type, status: 'True', reason: type, message: '', lastTransitionTime: now }
}

function claimOf(record: NodeCameRecord, pool: NodePool, now: string): NodeClaim {
  const { nodeClassRef, requirements, expireAfter, terminationGracePeriod, taints } = pool.spec.template.spec
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: karpenterKinds.nodeClaim.kind,
    metadata: {
      name: record.node,
      uid: `claim-${record.node}`,
      generation: 1,
      creationTimestamp: rfc3339(record.atMs),
      labels: { ...record.labels, [nodeClassLabel(nodeClassRef)]: nodeClassRef.name },
      finalizers: [terminationFinalizer],
      ...(pool.metadata.uid !== undefined && {
        ownerReferences: [
          {
            apiVersion: 'karpenter.sh/v1',
            kind: 'NodePool',
            name: pool.metadata.name,
            uid: pool.metadata.uid,
            blockOwnerDeletion: true,
          },
        ],
      }),
    },
    spec: {
      nodeClassRef,
      requirements,
      ...(taints && { taints }),
      ...(expireAfter !== undefined && { expireAfter }),
      ...(terminationGracePeriod !== undefined && { terminationGracePeriod }),
    },
    status: {
      providerID: providerIdOf(record),
      nodeName: record.node,
      capacity: record.capacity,
      allocatable: record.allocatable,
      conditions: ['Launched', 'Registered', 'Initialized', 'Ready'].map((type) => condition(type, now)),
    },
  }
}

function nodeOf(record: NodeCameRecord, now: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: record.node,
      uid: `node-${record.node}`,
      creationTimestamp: rfc3339(record.atMs),
      labels: { ...record.labels, [labels.registered]: 'true', [labels.initialized]: 'true' },
      annotations: {},
      finalizers: [terminationFinalizer],
    },
    spec: { providerID: providerIdOf(record) },
    status: {
      capacity: record.capacity,
      allocatable: record.allocatable,
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now }],
    },
  }
}

/** Bound and Ready on its node, or pending. */
function podOf({
  id,
  pod,
  now,
  node,
}: {
  readonly id: string
  readonly pod: Pod
  readonly now: string
  readonly node: string | undefined
}): Pod {
  const metadata = {
    ...pod.metadata,
    uid: `recorded-${id}`,
    creationTimestamp: now,
    annotations: { ...pod.metadata.annotations, [playIdAnnotation]: id },
  }
  if (node === undefined) return { ...pod, metadata, status: { phase: 'Pending' } }
  return {
    ...pod,
    metadata,
    spec: { ...pod.spec, nodeName: node },
    status: {
      phase: 'Running',
      startTime: now,
      conditions: ['PodScheduled', 'Ready', 'ContainersReady', 'Initialized'].map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: now,
      })),
    },
  }
}
