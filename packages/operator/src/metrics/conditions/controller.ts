/**
 * `operatorpkg.KIND.status`: metrics and events of the conditions and the deletion of objects (operations.md 9.3, 10).
 * Covers every object of a kind, whoever manages it.
 */
import {
  autoscalingKinds,
  type Condition,
  type ConditionSchema,
  ConditionSet,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  nodeClassLabel,
  type NodePool,
  ownValue,
} from '@tenon/api'
import { type Cache, done, type EventRecorder, type ObjectKey, type ReconcileResult } from '@tenon/kube'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import { keyOf } from '../../state/pods/pods.ts'
import {
  type Conditioned,
  ConditionMetrics,
  type ConditionMetricsOptions,
  type KindLabels,
  SharedConditionMetrics,
  type Transition,
  transitionsOf,
} from './status-conditions.ts'
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import { nodeClaimConditions, nodePoolConditions } from '../../state/conditions.ts'
import type { Caches } from '../../state/caches.ts'
import type { Metrics } from '../metrics.ts'
import type { Settings } from '../../settings.ts'

interface StatusOptions<T extends KubeObject> extends ConditionMetricsOptions {
  readonly name: string
  readonly cache: Cache<T>
  readonly kind: KindLabels
  /** Conditions of an object, including missing ones that count as Unknown. */
  readonly conditionsOf: (object: T) => readonly Condition[]
  /** Metrics that several kinds share; undefined for Nodes. */
  readonly shared?: SharedConditionMetrics
  readonly events: EventRecorder
}

class StatusConditions<T extends KubeObject> implements ControllerSpec {
  readonly name: string
  readonly concurrency = { least: 10, most: 10 }
  readonly #options: StatusOptions<T>
  readonly #metrics: ConditionMetrics
  /** As of the last reconcile. */
  readonly #seen = new Map<string, Conditioned>()
  /** Deleted objects that were not reconciled since, by key. */
  readonly #left = new Map<string, T>()

  constructor(options: StatusOptions<T>) {
    const { kind, name, shared } = options
    this.name = name
    this.#options = options
    this.#metrics = new ConditionMetrics(options, kind, shared)
  }

  watch(enqueue: Enqueue): void {
    this.#options.cache.onChange(({ kind, object }) => {
      const key = keyOf(object.metadata)
      if (kind === 'deleted') this.#left.set(key, object)
      if (kind === 'deleted' || !this.#isAsSeen(object)) enqueue(key)
    })
  }

  reconcile(key: string): Promise<ReconcileResult> {
    const object = this.#options.cache.get(objectKeyOf(key))
    const before = this.#seen.get(key)
    const isSame = before?.object.metadata.uid === object?.metadata.uid
    if (before !== undefined && !isSame) this.#gone(before.object)
    this.#left.delete(key)
    if (object === undefined) {
      this.#seen.delete(key)
      this.#metrics.drop(key)
    } else this.#look(object, isSame ? before : undefined)
    return Promise.resolve(done)
  }

  #look(object: T, before: Conditioned | undefined): void {
    const { conditionsOf, kind } = this.#options
    const conditions = wellFormed(conditionsOf(object))
    const after = { object: kept(object, kind.objectLabels), conditions }
    this.#seen.set(keyOf(object.metadata), after)
    this.#metrics.show(after)
    for (const transition of transitionsOf(before?.conditions ?? [], conditions)) {
      this.#metrics.transition(object, transition)
      this.#recordTransition(object, transition)
    }
    if (before !== undefined) this.#recordFinalized(object, finalizersOf(before.object), finalizersOf(object))
  }

  #gone(object: KubeObject): void {
    this.#recordFinalized(object, finalizersOf(object), [])
    const { uid, deletionTimestamp } = object.metadata
    const left = this.#left.get(keyOf(object.metadata))?.metadata
    const askedAt = left?.uid === uid ? left?.deletionTimestamp : deletionTimestamp
    if (askedAt === undefined) return
    const tookMs = this.#options.clock.now() - Date.parse(askedAt)
    this.#metrics.terminated(object, Math.max(0, tookMs / 1000))
  }

  /** No event for the first sight of a condition: the status before is unknown. */
  #recordTransition(object: T, { from, to }: Transition): void {
    if (from === undefined) return
    const { type, status, reason, message } = to
    this.#options.events.record({
      object,
      type: 'Normal',
      reason: type,
      message: `Condition ${type} went from ${from.status} to ${status}, reason ${reason}${message && `: ${message}`}`,
    })
  }

  #recordFinalized(object: KubeObject, before: readonly string[], after: readonly string[]): void {
    for (const finalizer of before) {
      if (after.includes(finalizer)) continue
      const message = `Finalizer ${finalizer} was removed`
      this.#options.events.record({ object, type: 'Normal', reason: 'Finalized', message })
    }
  }

  /** Filters heartbeats, by far the most frequent changes. */
  #isAsSeen(object: T): boolean {
    const { conditionsOf, kind } = this.#options
    const seen = this.#seen.get(keyOf(object.metadata))
    if (seen === undefined) return false
    const [before, after] = [seen.object.metadata, object.metadata]
    const conditions = wellFormed(conditionsOf(object))
    const isSame =
      after.uid === before.uid &&
      after.deletionTimestamp === before.deletionTimestamp &&
      isSameList(finalizersOf(seen.object), finalizersOf(object)) &&
      kind.objectLabels.every((key) => ownValue(after.labels, key) === ownValue(before.labels, key)) &&
      areAlike(seen.conditions, conditions)
    // The conditions of the former version would stay in memory.
    if (isSame) this.#seen.set(keyOf(object.metadata), { object: seen.object, conditions })
    return isSame
  }
}

function objectKeyOf(key: string): ObjectKey {
  const [name = '', namespace] = key.split('/').toReversed()
  return namespace === undefined ? { name } : { name, namespace }
}

/** The part of an object that is kept, so that former versions do not stay in memory. */
function kept({ apiVersion, kind, metadata }: KubeObject, objectLabels: readonly string[]): KubeObject {
  const { name, namespace, uid, deletionTimestamp, finalizers } = metadata
  const isKept = ([key]: readonly [string, string]) => objectLabels.includes(key)
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      labels: Object.fromEntries(Object.entries(metadata.labels ?? {}).filter(isKept)),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(finalizers !== undefined && { finalizers }),
    },
  }
}

function isSameList(before: readonly string[], after: readonly string[]): boolean {
  return before.length === after.length && after.every((one, index) => one === before[index])
}

function areAlike(before: readonly Condition[], after: readonly Condition[]): boolean {
  return (
    before.length === after.length &&
    after.every((one, index) => {
      const other = before[index]
      return (
        one.type === other?.type &&
        one.status === other.status &&
        one.reason === other.reason &&
        one.lastTransitionTime === other.lastTransitionTime
      )
    })
  )
}

function finalizersOf({ metadata }: KubeObject): readonly string[] {
  return metadata.finalizers ?? []
}

/** Removes malformed conditions, and fills in fields that are optional for Nodes. */
function wellFormed(conditions: readonly Condition[]): readonly Condition[] {
  if (!Array.isArray(conditions)) return []
  if (conditions.every(isWhole)) return conditions
  return conditions.flatMap((each: Partial<Condition> | null) => {
    if (typeof each?.type !== 'string' || each.status === undefined) return []
    const { type, status, reason = '', message = '', lastTransitionTime = '' } = each
    return [{ type, status, reason, message, lastTransitionTime }]
  })
}

function isWhole(condition: Partial<Condition> | null): boolean {
  const texts = [condition?.type, condition?.status, condition?.reason, condition?.message]
  return texts.every((text) => typeof text === 'string') && condition?.lastTransitionTime !== undefined
}

interface Dependencies {
  readonly caches: Pick<Caches, 'buffers' | 'nodeClaims' | 'nodePools' | 'nodes'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'registry'>
  readonly clock: Clock
  readonly settings: Pick<Settings, 'clusterStateObservability' | 'metricsDetail'>
}

/** One controller for each kind; none without clusterStateObservability. */
export function statusControllers(deps: Dependencies): readonly ControllerSpec[] {
  const { caches, clock, events, provider, settings } = deps
  if (!settings.clusterStateObservability) return []
  const { registry } = deps.metrics
  const common = { registry, events, clock, detail: settings.metricsDetail }
  const shared = new SharedConditionMetrics(common)
  const { group } = karpenterKinds.nodeClaim
  const ofClaim = [...provider.nodeClasses.map(nodeClassLabel), labels.nodePool]
  const nodeClaims = new StatusConditions({
    ...common,
    name: 'operatorpkg.nodeclaim.status',
    cache: caches.nodeClaims,
    kind: { group, kind: karpenterKinds.nodeClaim.kind, objectLabels: ofClaim },
    conditionsOf: (claim) => withMissing(claim, nodeClaimConditions),
    shared,
  })
  const nodePools = new StatusConditions({
    ...common,
    name: 'operatorpkg.nodepool.status',
    cache: caches.nodePools,
    kind: { group, kind: karpenterKinds.nodePool.kind, objectLabels: [] },
    conditionsOf: (pool) => withMissing(pool, nodePoolConditions),
    shared,
  })
  const nodes = new StatusConditions({
    ...common,
    name: 'operatorpkg.node.status',
    cache: caches.nodes,
    kind: { group: '', kind: kinds.node.kind, objectLabels: [...ofClaim, labels.initialized] },
    conditionsOf: storedConditions,
  })
  if (caches.buffers === undefined) return [nodeClaims, nodePools, nodes]
  const { capacityBuffer } = autoscalingKinds
  const buffers = new StatusConditions({
    ...common,
    name: 'operatorpkg.capacitybuffer.status',
    cache: caches.buffers.capacityBuffers,
    kind: { group: capacityBuffer.group, kind: capacityBuffer.kind, objectLabels: [] },
    conditionsOf: ({ status }) => status?.conditions ?? [],
    shared,
  })
  return [nodeClaims, nodePools, nodes, buffers]
}

/** Stored conditions, and missing ones as Unknown. */
function withMissing(object: NodeClaim | NodePool, schema: ConditionSchema): readonly Condition[] {
  const stored = object.status?.conditions ?? []
  if (!Array.isArray(stored)) return []
  return ConditionSet.of(object, schema).conditions
}

function storedConditions(node: Node): readonly Condition[] {
  return (node.status?.conditions ?? []) as readonly Condition[]
}
