/** The condition engine of Karpenter's kinds and node classes (api.md 8.1, lifecycle.md 2). */
import type { Condition, KubeObject } from './objects.ts'

/** Which conditions a kind's root condition `Ready` depends on, in order. */
export interface ConditionSchema {
  readonly dependents: readonly string[]
}

interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** A condition to set; the set fills in times and generation. */
export interface NewCondition {
  readonly type: string
  readonly status: Condition['status']
  /** Defaults to the type when the status is True. */
  readonly reason?: string
  readonly message?: string
}

const root = 'Ready'
const awaiting = {
  status: 'Unknown',
  reason: 'AwaitingReconciliation',
  message: 'object is awaiting reconciliation',
} as const

/** The conditions of one object, to be changed and written back. Immutable: every change returns a new set. */
export class ConditionSet {
  readonly #object: WithConditions
  readonly #schema: ConditionSchema
  readonly conditions: readonly Condition[]

  private constructor(object: WithConditions, schema: ConditionSchema, conditions: readonly Condition[]) {
    this.#object = object
    this.#schema = schema
    this.conditions = conditions
  }

  /** Reads an object's conditions and adds the missing root and dependent ones as Unknown. */
  static of(object: WithConditions, schema: ConditionSchema): ConditionSet {
    const stored = object.status?.conditions ?? []
    const missing = [root, ...schema.dependents].filter((type) => !stored.some((c) => c.type === type))
    if (missing.length === 0) return new ConditionSet(object, schema, stored)
    const added = missing.map(
      (type): Condition => ({
        type,
        ...awaiting,
        lastTransitionTime: object.metadata.creationTimestamp ?? '1970-01-01T00:00:00Z',
        observedGeneration: object.metadata.generation ?? 0,
      }),
    )
    return new ConditionSet(object, schema, [...stored, ...added]).#recomputed(
      Date.parse(object.metadata.creationTimestamp ?? '1970-01-01T00:00:00Z'),
    )
  }

  get(type: string): Condition | undefined {
    return this.conditions.find((condition) => condition.type === type)
  }

  isTrue(type: string): boolean {
    return this.get(type)?.status === 'True'
  }

  isFalse(type: string): boolean {
    return this.get(type)?.status === 'False'
  }

  isUnknown(type: string): boolean {
    return !this.isTrue(type) && !this.isFalse(type)
  }

  /** Sets a condition; `nowMs` becomes its transition time when its status changes. */
  set(next: NewCondition, nowMs: number): ConditionSet {
    const generation = this.#object.metadata.generation ?? 0
    const old = this.get(next.type)
    const fresh: Condition = {
      type: next.type,
      status: next.status,
      reason: next.reason ?? next.type,
      message: next.message ?? '',
      lastTransitionTime:
        old !== undefined && old.status === next.status ? old.lastTransitionTime : seconds(nowMs),
      observedGeneration: generation,
    }
    if (old !== undefined && sameCondition(old, fresh)) return this
    const deleting = this.#object.metadata.deletionTimestamp !== undefined
    const others = this.conditions
      .filter((condition) => condition.type !== next.type)
      .map((condition) => (deleting ? { ...condition, observedGeneration: generation } : condition))
    const replaced = new ConditionSet(this.#object, this.#schema, [...others, fresh])
    return next.type === root ? replaced.#sorted() : replaced.#recomputed(nowMs)
  }

  /** Updates the observed generation of a dependent condition whose status did not change. */
  restamp(type: string, nowMs: number): ConditionSet {
    const old = this.get(type)
    return old === undefined ? this : this.set(old, nowMs)
  }

  /** Removes an independent condition. */
  clear(type: string): ConditionSet {
    if (type === root || this.#schema.dependents.includes(type)) {
      throw new RangeError(`condition ${type} cannot be cleared`)
    }
    if (this.get(type) === undefined) return this
    const rest = this.conditions.filter((condition) => condition.type !== type)
    return new ConditionSet(
      this.#object,
      this.#schema,
      rest.toSorted((a, b) => compare(a.type, b.type)),
    )
  }

  #sorted(): ConditionSet {
    const ordered = this.conditions.toSorted((a, b) =>
      a.type === root ? 1 : b.type === root ? -1 : compare(a.lastTransitionTime, b.lastTransitionTime),
    )
    return new ConditionSet(this.#object, this.#schema, ordered)
  }

  #recomputed(nowMs: number): ConditionSet {
    const sorted = this.#sorted()
    const generation = this.#object.metadata.generation ?? 0
    const unhealthy = sorted.conditions
      .filter((c) => this.#schema.dependents.includes(c.type))
      .filter((c) => c.status !== 'True' || c.observedGeneration !== generation)
    if (unhealthy.length === 0) return sorted.set({ type: root, status: 'True' }, nowMs)
    const failed = unhealthy.some((c) => c.status === 'False' && c.observedGeneration === generation)
    const message = unhealthy
      .toSorted((a, b) => compare(b.lastTransitionTime, a.lastTransitionTime))
      .map((c) => `${c.type}=${c.status}`)
      .join(', ')
    return sorted.set(
      failed
        ? { type: root, status: 'False', reason: 'UnhealthyDependents', message }
        : { type: root, status: 'Unknown', reason: 'ReconcilingDependents', message },
      nowMs,
    )
  }
}

/** Finds a condition by type. Callers treat a missing one as Unknown. */
export function conditionOf(object: WithConditions, type: string): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type)
}

/**
 * The conditions of an object with this one, for kinds without a root condition. Returns the same list if nothing changes.
 */
export function withCondition(
  object: WithConditions,
  { type, status, reason = type, message = '' }: NewCondition,
  nowMs: number,
): readonly Condition[] {
  const stored = object.status?.conditions ?? []
  const old = conditionOf(object, type)
  const { generation: observedGeneration = 0 } = object.metadata
  const lastTransitionTime =
    old === undefined || old.status !== status ? seconds(nowMs) : old.lastTransitionTime
  const next: Condition = { type, status, reason, message, lastTransitionTime, observedGeneration }
  if (old !== undefined && sameCondition(old, next)) return stored
  return old === undefined
    ? [...stored, next]
    : stored.map((condition) => (condition.type === type ? next : condition))
}

export function isConditionTrue(object: WithConditions, type: string): boolean {
  return conditionOf(object, type)?.status === 'True'
}

function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** Whether two conditions of one type are equal, including generation and transition time. */
export function sameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.lastTransitionTime === b.lastTransitionTime &&
    a.observedGeneration === b.observedGeneration
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
