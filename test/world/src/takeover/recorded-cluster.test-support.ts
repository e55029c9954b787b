/** A cluster as the Go Karpenter leaves it when it is stopped, with instances in every state. */
import {
  type Condition,
  karpenterKinds,
  type KubeObject,
  kinds,
  type NodeClaim,
  type NodePool,
  type OwnerReference,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { rfc3339 } from '@tenon/runtime'
import {
  type InstanceParts,
  nodeNameOf,
  ownerOf,
  recordedClaim,
  recordedNode,
  type Template,
} from './recorded-instance.test-support.ts'

const minutes = 60_000
const hours = 60 * minutes
const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
const hashVersion = 'v3'
/** Of the templates below, as the hashing library of the Go version answers. */
const hashes = { general: '7044647627242975758', fixed: '7428780003907761376' } as const

const linux = { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] } as const
const onDemand = { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] } as const
const tier = { key: 'example.com/tier', operator: 'In', values: ['gold'] } as const
/** The one that instances of pools `general` and `batch` begin with. */
export const startupTaint = { key: 'example.com/agent-not-ready', effect: 'NoSchedule' } as const

const generalSpec = {
  nodeClassRef,
  requirements: [linux, onDemand, tier],
  taints: [{ key: 'dedicated', value: 'payments', effect: 'NoSchedule' }],
  startupTaints: [startupTaint],
  expireAfter: '720h',
} as const
const fixedSpec = { nodeClassRef, requirements: [linux, onDemand], expireAfter: 'Never' } as const

const inPool = (pool: string): Template => ({
  pool,
  labels: { team: 'payments', 'example.com/tier': 'gold' },
  annotations: { 'example.com/note': 'kept', ...hashed(hashes.general) },
  spec: { ...generalSpec, terminationGracePeriod: '10m0s' },
})
const general = inPool('general')
const batch = inPool('batch')
const broken = inPool('broken')
const fixed: Template = { pool: 'fixed', annotations: hashed(hashes.fixed), spec: fixedSpec }
const standalone: Template = { pool: undefined, spec: { ...fixedSpec, expireAfter: '720h' } }

function hashed(hash: string): Readonly<Record<string, string>> {
  return { 'karpenter.sh/nodepool-hash': hash, 'karpenter.sh/nodepool-hash-version': hashVersion }
}

/** One instance of the recording. */
export interface RecordedInstance {
  readonly name: string
  readonly template: Template
  readonly parts: InstanceParts
  /** What had been asked to go when the Go version was stopped. */
  readonly deleted?: readonly ('claim' | 'node')[]
  readonly pods?: 'owned' | 'blocked' | 'protected'
}

/** Claims that nothing may happen to. */
export const healthyClaims: readonly string[] = ['general-a', 'general-b', 'fixed-a', 'standalone-a']

/** Instances of the recording. @param nowMs when the Go version was stopped. */
export function recordedInstances(nowMs: number): readonly RecordedInstance[] {
  const longAgo = nowMs - 3 * hours
  const initialized = { progress: 'initialized', sinceMs: longAgo } as const
  const isTrue = (type: string, reason = type): Partial<Condition> => ({
    type,
    reason,
    message: reason === type ? '' : reason,
    lastTransitionTime: rfc3339(nowMs - minutes),
  })
  const draining = {
    type: 'Drained',
    status: 'Unknown',
    reason: 'Draining',
    message: 'Draining',
    lastTransitionTime: rfc3339(nowMs - minutes),
  } as const
  const leaving = {
    isDisrupted: true,
    labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': 'karpenter' },
  }
  const ending = [isTrue('Drained'), isTrue('VolumesDetached'), isTrue('InstanceTerminating')]
  const deadline = (atMs: number) => ({ 'karpenter.sh/nodeclaim-termination-timestamp': rfc3339(atMs) })
  const consolidatable = { ...initialized, conditions: [isTrue('Consolidatable')] }
  return [
    { name: 'general-a', template: general, parts: consolidatable, pods: 'owned' },
    { name: 'general-b', template: general, parts: consolidatable, pods: 'owned' },
    { name: 'fixed-a', template: fixed, parts: initialized },
    { name: 'standalone-a', template: standalone, parts: initialized },
    { name: 'created', template: batch, parts: { progress: 'created', sinceMs: nowMs, hasFinalizer: false } },
    {
      name: 'launching',
      template: batch,
      parts: { progress: 'created', sinceMs: nowMs, isStatusLost: true },
    },
    { name: 'launched', template: batch, parts: { progress: 'launched', sinceMs: nowMs - minutes } },
    {
      name: 'lost',
      template: batch,
      parts: { progress: 'launched', sinceMs: nowMs - 16 * minutes, node: { isAbsent: true } },
    },
    {
      name: 'registering',
      template: batch,
      parts: {
        progress: 'launched',
        sinceMs: nowMs - minutes,
        node: { isRegistered: true, hasStartupTaints: true },
      },
    },
    {
      name: 'registered',
      template: batch,
      parts: { progress: 'registered', sinceMs: nowMs - minutes, node: { hasStartupTaints: true } },
    },
    {
      name: 'interrupted',
      template: batch,
      parts: {
        ...initialized,
        conditions: [isTrue('DisruptionReason', 'Underutilized')],
        node: { isDisrupted: true },
      },
      pods: 'owned',
    },
    {
      name: 'draining',
      template: batch,
      parts: {
        ...initialized,
        conditions: [isTrue('DisruptionReason', 'Underutilized'), draining],
        claimAnnotations: deadline(nowMs + 9 * minutes),
        node: leaving,
      },
      deleted: ['node', 'claim'],
      pods: 'blocked',
    },
    {
      name: 'terminating',
      template: batch,
      parts: {
        ...initialized,
        conditions: ending,
        claimAnnotations: deadline(nowMs + 9 * minutes),
        node: leaving,
      },
      deleted: ['node', 'claim'],
    },
    {
      name: 'finalizing',
      template: batch,
      parts: {
        ...initialized,
        conditions: ending,
        claimAnnotations: deadline(nowMs + 9 * minutes),
        node: { isAbsent: true },
      },
      deleted: ['claim'],
    },
    {
      name: 'repairing',
      template: batch,
      parts: {
        ...initialized,
        conditions: [draining],
        claimAnnotations: deadline(nowMs - minutes),
        node: leaving,
      },
      deleted: ['node', 'claim'],
      pods: 'protected',
    },
  ]
}

/** An instance whose kubelet has been silent for longer than the provider tolerates. */
export function deadInstance(nowMs: number): RecordedInstance {
  return {
    name: 'dead',
    template: broken,
    parts: { progress: 'initialized', sinceMs: nowMs - 11 * minutes, node: { isDead: true } },
  }
}

/** Where a recording is played back to. */
export interface RecordingTarget {
  create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T>
  patchStatus(type: ResourceType, name: string, patch: object): Promise<void>
  delete(type: ResourceType, name: string): Promise<void>
}

const replicaSetKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  namespaced: true,
}
/** The kind of PodDisruptionBudgets. */
export const budgetKind: ResourceType = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
}

/** Creates the pools, their class, and the instances; what the Go version was deleting is being deleted after. */
export async function playRecording(
  target: RecordingTarget,
  instances: readonly RecordedInstance[],
  nowMs: number,
): Promise<void> {
  const header = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
  await target.create(kwokNodeClassKind, { ...header, metadata: { name: 'default' }, spec: {} })
  const pools = new Map<string | undefined, NodePool>()
  for (const { pool, status } of recordedPools(instances, nowMs)) {
    const created = await target.create(karpenterKinds.nodePool, pool)
    await target.patchStatus(karpenterKinds.nodePool, pool.metadata.name, { status })
    pools.set(pool.metadata.name, created)
  }
  for (const budget of budgets) await target.create(budgetKind, budget)
  for (const instance of instances) await playInstance(target, instance, pools.get(instance.template.pool))
  for (const { name, deleted = [] } of instances) {
    if (deleted.includes('claim')) await target.delete(karpenterKinds.nodeClaim, name)
    if (deleted.includes('node')) await target.delete(kinds.node, nodeNameOf(name))
  }
}

async function playInstance(
  target: RecordingTarget,
  { name, template, parts, pods }: RecordedInstance,
  pool: NodePool | undefined,
): Promise<void> {
  const { object, status } = recordedClaim(name, template, parts)
  const claim = await target.create<NodeClaim>(
    karpenterKinds.nodeClaim,
    pool === undefined ? object : ownedBy(object, ownerOf(pool)),
  )
  if (status !== undefined) await target.patchStatus(karpenterKinds.nodeClaim, name, { status })
  const node = recordedNode(name, template, parts)
  if (node === undefined) return
  const isOwned = (node.metadata.finalizers ?? []).length > 0
  await target.create(kinds.node, isOwned ? ownedBy(node, ownerOf(claim)) : node)
  if (pods === 'owned') await target.create(replicaSetKind, aReplicaSet(name))
  else if (pods !== undefined) await target.create(kinds.pod, aPod(name, pods))
}

const ownedBy = <T extends KubeObject>(object: T, owner: OwnerReference): T => ({
  ...object,
  metadata: { ...object.metadata, ownerReferences: [owner] },
})

function recordedPools(
  instances: readonly RecordedInstance[],
  nowMs: number,
): readonly { readonly pool: NodePool; readonly status: NodePool['status'] }[] {
  const { pool: _general, labels, annotations: _hash, spec } = general
  const template = {
    metadata: { labels: { team: labels?.['team'] ?? '' }, annotations: { 'example.com/note': 'kept' } },
    spec: { ...spec, terminationGracePeriod: '10m' },
  }
  const aPool = (name: string, hash: string, poolSpec: NodePool['spec']): NodePool => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name, annotations: hashed(hash) },
    spec: poolSpec,
  })
  const never = { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' } as const
  const pools = [
    aPool('general', hashes.general, {
      template,
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '30s' },
      limits: { cpu: '100' },
    }),
    aPool('batch', hashes.general, { template, disruption: never }),
    aPool('fixed', hashes.fixed, { template: { spec: fixedSpec }, replicas: 1, limits: { nodes: '3' } }),
    aPool('broken', hashes.general, { template, disruption: never }),
  ]
  return pools.map((pool) => ({ pool, status: poolStatus(pool, instances, nowMs) }))
}

function poolStatus(
  { metadata: { name } }: NodePool,
  instances: readonly RecordedInstance[],
  nowMs: number,
): NodePool['status'] {
  const nodes = instances.filter(({ template }) => template.pool === name).length
  const lastTransitionTime = rfc3339(nowMs - 24 * hours)
  const types = ['NodeClassReady', 'NodeRegistrationHealthy', 'ValidationSucceeded', 'Ready']
  return {
    nodes,
    resources: {
      cpu: nodes % 2 === 0 ? String(nodes * 1.5) : `${nodes * 1500}m`,
      memory: nodes === 0 ? '0' : `${nodes}Gi`,
      nodes: String(nodes),
      pods: String(nodes * 4),
      'ephemeral-storage': '0',
    },
    nodeClassObservedGeneration: 1,
    conditions: types.map((type) => ({
      type,
      status: 'True',
      reason: type,
      message: '',
      lastTransitionTime,
      observedGeneration: 1,
    })),
  }
}

const budgets: readonly KubeObject[] = [
  aBudget('payments', { minAvailable: 1 }),
  aBudget('blocked', { maxUnavailable: 0 }),
]

function aBudget(app: string, limit: object): KubeObject {
  const object = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace: 'default' },
    spec: { ...limit, selector: { matchLabels: { app } } },
  }
  return object
}

function podSpec(claim: string): Pod['spec'] {
  return {
    nodeName: nodeNameOf(claim),
    terminationGracePeriodSeconds: 1,
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    containers: [
      {
        name: 'app',
        image: 'registry.k8s.io/pause',
        resources: { requests: { cpu: '500m', memory: '256Mi' } },
      },
    ],
  }
}

/** Its pods are bound by their template, so that nothing of this depends on a scheduler. */
function aReplicaSet(claim: string): KubeObject {
  const labels = { app: 'payments', on: claim }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: `payments-${claim}`, namespace: 'default' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(claim) },
    },
  }
  return object
}

function aPod(claim: string, kind: 'blocked' | 'protected'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${kind}-${claim}`,
      namespace: 'default',
      labels: { app: kind },
      ...(kind === 'protected' && { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }),
    },
    spec: podSpec(claim),
  }
}
