/** Applies changes to a snapshot as if they had been made in the cluster (ask.md 5). */
import {
  annotations,
  controllerOf,
  karpenterKinds,
  type KubeObject,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
  type Pod,
  type PodSpec,
  withAdmission,
} from '@tenon/api'
import type { Snapshot } from '../snapshot/snapshot.ts'

/** Names one object; `kind` is spelled as in the object, such as `NodePool`. */
export interface ObjectName {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

export type SnapshotChange =
  /** An object as the API server would store it. It replaces the whole spec. */
  | { readonly kind: 'apply'; readonly object: KubeObject }
  | { readonly kind: 'delete'; readonly object: ObjectName }
  | { readonly kind: 'scale'; readonly object: ObjectName; readonly replicas: number }

/** The changed snapshot, or why a change is impossible; `missing` names the object that does not exist. */
export type ChangedSnapshot =
  | { readonly ok: Snapshot }
  | { readonly problem: string; readonly missing?: ObjectName }

/** Applies changes in order. */
export function changedSnapshot(snapshot: Snapshot, changes: readonly SnapshotChange[]): ChangedSnapshot {
  let current = snapshot
  for (const change of changes) {
    const changed = changedOnce(current, change)
    if ('problem' in changed) return changed
    current = changed.ok
  }
  return { ok: current }
}

function changedOnce(snapshot: Snapshot, change: SnapshotChange): ChangedSnapshot {
  switch (change.kind) {
    case 'apply':
      return applied(snapshot, change.object)
    case 'delete':
      return deleted(snapshot, change.object)
    case 'scale':
      return scaled(snapshot, change.object, change.replicas)
  }
}

interface Workload extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly parallelism?: number
    readonly template: { readonly metadata?: KubeObject['metadata']; readonly spec: PodSpec }
  }
}

const workloadKinds: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'ReplicaSet', 'Job'])

function isWorkload(object: KubeObject): object is Workload {
  return workloadKinds.has(object.kind)
}

function applied(snapshot: Snapshot, object: KubeObject): ChangedSnapshot {
  if (isWorkload(object)) {
    const { spec } = object
    const count = spec.replicas ?? spec.parallelism ?? 1
    const template = podFrom(object, spec.template)
    return { ok: withPods(without(snapshot, nameOf(object)), object, template, count) }
  }
  if (object.kind === 'Pod') return { ok: replaced(snapshot, waiting(object as Pod)) }
  if (object.kind !== karpenterKinds.nodePool.kind) return { ok: replaced(snapshot, object) }
  return { ok: replaced(snapshot, asController(object as NodePool, snapshot)) }
}

/** Adds to a NodePool what the controller writes. A new one is ready if its node class exists. */
function asController(pool: NodePool, { objects, takenAtMs }: Snapshot): NodePool {
  const before = objects.find((each): each is NodePool => isNamed(each, nameOf(pool)))
  const { kind, name } = pool.spec.template.spec.nodeClassRef
  const isClassThere = objects.some((each) => each.kind === kind && each.metadata.name === name)
  const lastTransitionTime = new Date(takenAtMs).toISOString()
  const condition = isClassThere
    ? ({ type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime } as const)
    : ({
        type: 'Ready',
        status: 'False',
        reason: 'NodeClassNotFound',
        message: `${kind} ${name} does not exist`,
        lastTransitionTime,
      } as const)
  return {
    ...pool,
    metadata: {
      ...before?.metadata,
      ...pool.metadata,
      annotations: {
        ...pool.metadata.annotations,
        [annotations.nodePoolHash]: nodePoolHash(pool),
        [annotations.nodePoolHashVersion]: nodePoolHashVersion,
      },
    },
    status: isClassThere && before?.status !== undefined ? before.status : { conditions: [condition] },
  }
}

function deleted(snapshot: Snapshot, name: ObjectName): ChangedSnapshot {
  const isThere = snapshot.objects.some((object) => isNamed(object, name))
  const pods = podsOf(snapshot, name)
  if (!isThere && pods.length === 0) return { problem: `there is no ${textOf(name)}`, missing: name }
  return { ok: without(snapshot, name) }
}

function scaled(snapshot: Snapshot, name: ObjectName, replicas: number): ChangedSnapshot {
  const pods = podsOf(snapshot, name)
  const [newest] = pods.toSorted((a, b) => (createdOf(a) < createdOf(b) ? 1 : -1))
  if (newest === undefined)
    return { problem: `${textOf(name)} has no pods to copy; give its manifest with -f` }
  const excess = pods.toSorted(byDeletion).slice(0, Math.max(0, pods.length - replicas))
  const gone = new Set(excess)
  const kept = { ...snapshot, objects: snapshot.objects.filter((object) => !gone.has(object as Pod)) }
  const { nodeName: _, ...spec } = newest.spec
  const template = { ...newest, spec }
  return { ok: withPods(kept, name, template, Math.max(0, replicas - pods.length)) }
}

/** Pending pods are deleted first, then the youngest. */
function byDeletion(a: Pod, b: Pod): number {
  const waits = (pod: Pod): number => ((pod.spec.nodeName ?? '') === '' ? 0 : 1)
  return waits(a) - waits(b) || (createdOf(a) > createdOf(b) ? -1 : 1)
}

const createdOf = ({ metadata }: Pod): string => metadata.creationTimestamp ?? ''

/** Pods of a workload by owner references; those of a Deployment via its ReplicaSets. */
export function podsOf({ objects }: Snapshot, { kind, namespace = '', name }: ObjectName): readonly Pod[] {
  return objects.filter((object): object is Pod => {
    if (object.kind !== 'Pod' || (object.metadata.namespace ?? '') !== namespace) return false
    const owner = controllerOf(object)
    if (owner === undefined) return false
    if (kind !== 'Deployment') return owner.kind === kind && owner.name === name
    return owner.kind === 'ReplicaSet' && owner.name.replace(/-[^-]*$/, '') === name
  })
}

/** Adds pending pods. */
function withPods(
  snapshot: Snapshot,
  {
    metadata,
    kind,
    name = metadata?.name ?? '',
    namespace = metadata?.namespace ?? 'default',
  }: Partial<ObjectName> & Partial<KubeObject>,
  template: Pod,
  count: number,
): Snapshot {
  const owner = controllerOf(template) ?? {
    apiVersion: 'apps/v1',
    kind: kind === 'Deployment' ? 'ReplicaSet' : (kind ?? ''),
    name: kind === 'Deployment' ? `${name}-simulated` : name,
    uid: `simulated-${namespace}-${name}`,
    controller: true,
  }
  const taken = new Set(snapshot.objects.map((object) => object.metadata.uid))
  const uidOf = (index: number): string => `simulated-${namespace}-${owner.name}-${index}`
  let first = 0
  while (taken.has(uidOf(first))) first++
  const pods = Array.from({ length: count }, (_, at) => first + at).map((index) =>
    waiting({
      ...template,
      metadata: {
        ...template.metadata,
        name: `${owner.name}-simulated-${index}`,
        namespace,
        uid: uidOf(index),
        ownerReferences: [owner],
      },
    }),
  )
  return { ...snapshot, objects: [...snapshot.objects, ...pods] }
}

function podFrom({ metadata }: Workload, template: Workload['spec']['template']): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: metadata.name, namespace: metadata.namespace ?? 'default' },
    spec: template.spec,
  }
}

/** A pod that kube-scheduler could not place. */
export function waiting(pod: Pod): Pod {
  const unschedulable = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }
  return {
    ...pod,
    metadata: { ...pod.metadata, namespace: pod.metadata.namespace ?? 'default' },
    spec: withAdmission(pod.spec),
    status: { phase: 'Pending', conditions: [unschedulable] },
  }
}

function replaced(snapshot: Snapshot, object: KubeObject): Snapshot {
  const name = nameOf(object)
  const isThere = snapshot.objects.some((each) => isNamed(each, name))
  const objects = isThere
    ? snapshot.objects.map((each) =>
        isNamed(each, name) ? { ...object, metadata: { ...each.metadata, ...object.metadata } } : each,
      )
    : [...snapshot.objects, object]
  return { ...snapshot, objects }
}

/** Removes an object and everything it owns. NodeClaims are marked as being deleted, so that their nodes drain. */
function without(snapshot: Snapshot, name: ObjectName): Snapshot {
  const pods = new Set<KubeObject>(podsOf(snapshot, name))
  const { objects, takenAtMs } = snapshot
  const deletionTimestamp = new Date(takenAtMs).toISOString()
  const leaves = (object: KubeObject): boolean =>
    isNamed(object, name) ||
    (name.kind === karpenterKinds.nodePool.kind &&
      object.kind === karpenterKinds.nodeClaim.kind &&
      (object.metadata.ownerReferences ?? []).some(
        (owner) => owner.kind === name.kind && owner.name === name.name,
      ))
  return {
    ...snapshot,
    objects: objects.flatMap((object) => {
      if (pods.has(object)) return []
      if (!leaves(object)) return [object]
      const drains = object.kind === karpenterKinds.nodeClaim.kind || object.kind === 'Node'
      return drains ? [{ ...object, metadata: { ...object.metadata, deletionTimestamp } }] : []
    }),
  }
}

function isNamed({ kind, metadata }: KubeObject, name: ObjectName): boolean {
  return (
    kind === name.kind && metadata.name === name.name && (metadata.namespace ?? '') === (name.namespace ?? '')
  )
}

function nameOf({ kind, metadata }: KubeObject): ObjectName {
  const { name, namespace } = metadata
  return { kind, name, ...(namespace !== undefined && { namespace }) }
}

function textOf({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace === undefined || namespace === '' ? '' : `${namespace}/`}${name}`
}
