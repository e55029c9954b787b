/**
 * `operatorpkg.KIND.status`: tells how the conditions of objects of one kind change, in metrics and events,
 * and how the objects go (operations.md 9.3, 10). Reads only, and every object, whoever manages it.
 */
import { type Condition, type KubeObject, ownValue } from '@tenon/api'
import { type Cache, done, type EventRecorder, type ObjectKey, type ReconcileResult } from '@tenon/kube'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import {
  type Conditioned,
  ConditionMetrics,
  type ConditionMetricsOptions,
  type KindLabels,
  keyOf,
  type SharedConditionMetrics,
  type Transition,
  transitionsOf,
} from './status-conditions.ts'

/** What is told about one kind. */
export interface StatusOptions<T extends KubeObject> extends ConditionMetricsOptions {
  /** Of the controller. */
  readonly name: string
  readonly cache: Cache<T>
  readonly labels: KindLabels
  /** The conditions that count for an object, with those that are missing where they count too. */
  readonly conditionsOf: (object: T) => readonly Condition[]
  /** Metrics that several kinds share; not every kind takes part. */
  readonly shared?: SharedConditionMetrics
  readonly events: EventRecorder
}

export class StatusConditions<T extends KubeObject> implements ControllerSpec {
  readonly name: string
  readonly concurrency = { least: 10, most: 10 }
  readonly #options: StatusOptions<T>
  readonly #metrics: ConditionMetrics
  /** As they were at the last look. */
  readonly #seen = new Map<string, Conditioned>()
  /** Objects that are gone and were not looked at since, as they were last; by key. */
  readonly #left = new Map<string, T>()

  constructor(options: StatusOptions<T>) {
    const { labels, name, shared } = options
    this.name = name
    this.#options = options
    this.#metrics = new ConditionMetrics(options, labels, shared)
  }

  watch(enqueue: Enqueue): void {
    this.#options.cache.onChange(({ kind, object }) => {
      const key = keyOf(object)
      if (kind === 'deleted') this.#left.set(key, object)
      if (kind === 'deleted' || !this.#isAsSeen(object)) enqueue(key)
    })
  }

  /** Looks at one object. */
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
    const { conditionsOf, labels } = this.#options
    const conditions = wellFormed(conditionsOf(object))
    const after = { object: kept(object, labels.objectLabels), conditions }
    this.#seen.set(keyOf(object), after)
    this.#metrics.show(after)
    for (const transition of transitionsOf(before?.conditions ?? [], conditions)) {
      this.#metrics.transition(object, transition)
      this.#tell(object, transition)
    }
    if (before !== undefined) this.#tellFinalized(object, finalizersOf(before.object), finalizersOf(object))
  }

  #gone(object: KubeObject): void {
    this.#tellFinalized(object, finalizersOf(object), [])
    const { uid, deletionTimestamp } = object.metadata
    const left = this.#left.get(keyOf(object))?.metadata
    const askedAt = left?.uid === uid ? left?.deletionTimestamp : deletionTimestamp
    if (askedAt === undefined) return
    const tookMs = this.#options.clock.now() - Date.parse(askedAt)
    this.#metrics.terminated(object, Math.max(0, tookMs / 1000))
  }

  /** The first sight of a condition is none of its transitions: nobody knows what was before. */
  #tell(object: T, { from, to }: Transition): void {
    if (from === undefined) return
    const { type, status, reason, message } = to
    this.#options.events.record({
      object,
      type: 'Normal',
      reason: type,
      message: `Condition ${type} went from ${from.status} to ${status}, reason ${reason}${message && `: ${message}`}`,
    })
  }

  #tellFinalized(object: KubeObject, before: readonly string[], after: readonly string[]): void {
    for (const finalizer of before) {
      if (after.includes(finalizer)) continue
      const message = `Finalizer ${finalizer} was removed`
      this.#options.events.record({ object, type: 'Normal', reason: 'Finalized', message })
    }
  }

  /** Heartbeats, by far the most of all changes, matter to nothing here. */
  #isAsSeen(object: T): boolean {
    const { conditionsOf, labels } = this.#options
    const seen = this.#seen.get(keyOf(object))
    if (seen === undefined) return false
    const [before, after] = [seen.object.metadata, object.metadata]
    const conditions = wellFormed(conditionsOf(object))
    const isSame =
      after.uid === before.uid &&
      after.deletionTimestamp === before.deletionTimestamp &&
      isSameList(finalizersOf(seen.object), finalizersOf(object)) &&
      labels.objectLabels.every((key) => ownValue(after.labels, key) === ownValue(before.labels, key)) &&
      areAlike(seen.conditions, conditions)
    // Those of the former version would stay in memory.
    if (isSame) this.#seen.set(keyOf(object), { object: seen.object, conditions })
    return isSame
  }
}

function objectKeyOf(key: string): ObjectKey {
  const [name = '', namespace] = key.split('/').toReversed()
  return namespace === undefined ? { name } : { name, namespace }
}

/** What is remembered of an object, so that its former versions do not stay in memory. */
function kept({ apiVersion, kind, metadata }: KubeObject, objectLabels: readonly string[]): KubeObject {
  const { name, namespace, uid, deletionTimestamp, finalizers, labels } = metadata
  const isKept = ([key]: readonly [string, string]) => objectLabels.includes(key)
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      labels: Object.fromEntries(Object.entries(labels ?? {}).filter(isKept)),
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

/** A status that other programs write may hold anything; conditions of Nodes need no reason. */
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
