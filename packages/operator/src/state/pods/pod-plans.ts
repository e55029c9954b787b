/** The planned node of each pending pod, and nominations that were written (planned-placement.md). */
import type { PodSpec } from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { isActive } from './pods.ts'

/** On NodeClaims: UID prefixes of the pods that it was launched for. */
export const plannedPodsAnnotation = 'tenon.sh/planned-pods'

/** A claim, or a Node without a claim. */
export type PlanTarget =
  | { readonly kind: 'claim'; readonly name: string }
  | { readonly kind: 'node'; readonly name: string }

/**
 * How the Kubernetes scheduler is steered. `told`: the pod is nominated. `filler`: it is not, as it takes the room that
 * others leave, but it waits for its node. `free`: the pod may go anywhere.
 */
type Steering = 'told' | 'filler' | 'free'

export interface PodPlan {
  readonly target: PlanTarget
  /** Unix milliseconds. */
  readonly madeMs: number
  readonly steering: Steering
  /** Position in the order of nominations of its decision, from 0. */
  readonly turn?: number
  /** Spec of the pod at that time; undefined after a restart. */
  readonly spec?: PodSpec
}

/** The last nomination of a pod by this process. */
export interface WrittenNomination {
  readonly node: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** Whether the API server accepted it. */
  readonly isAccepted: boolean
  /** Of the pod in the response. */
  readonly resourceVersion?: string
}

const keyOf = ({ kind, name }: PlanTarget) => `${kind}/${name}`

/** Plans by pod UID. A plan ends when its pod is bound or deleted, when its target is deleted, or when it is too old. */
export class PodPlans {
  readonly #clock: Pick<Clock, 'now'>
  readonly #maxAgeMs: number
  readonly #plans = new Map<string, PodPlan>()
  readonly #byTarget = new Map<string, Set<string>>()
  /** Claims of one decision, by name of each of them. */
  readonly #siblings = new Map<string, Set<string>>()
  readonly #written = new Map<string, WrittenNomination>()
  readonly #listeners = new Set<(uids: readonly string[]) => void>()
  /** UIDs of pods with a new or confirmed plan. */
  readonly planned: Listeners<string> = new Listeners()

  constructor(clock: Pick<Clock, 'now'>, maxAgeMs: number) {
    this.#clock = clock
    this.#maxAgeMs = maxAgeMs
  }

  follow({ pods, nodes, nodeClaims }: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims'>): void {
    pods.onChange(({ kind, object }) => {
      if (kind === 'deleted' || !isActive(object)) this.forget(object.metadata.uid ?? '')
    })
    nodes.onChange(({ kind, object: { metadata } }) => {
      if (kind === 'deleted' || metadata.deletionTimestamp !== undefined)
        this.dropTarget({ kind: 'node', name: metadata.name })
    })
    nodeClaims.onChange(({ kind, object: { metadata, status } }) => {
      if (kind !== 'deleted' && metadata.deletionTimestamp === undefined) return
      // A failed launch would likely fail again at once, so it does not trigger a pass.
      const isQuiet = (status?.providerID ?? '') === ''
      this.dropTarget({ kind: 'claim', name: metadata.name }, isQuiet)
    })
  }

  get(uid: string): PodPlan | undefined {
    const plan = this.#plans.get(uid)
    if (plan === undefined || this.#clock.now() - plan.madeMs < this.#maxAgeMs) return plan
    this.drop(uid)
    this.#notifyDropped([uid])
    return undefined
  }

  /** A plan for the same target keeps its age. */
  set(uid: string, plan: Omit<PodPlan, 'madeMs'>): void {
    const before = this.get(uid)
    if (before !== undefined && keyOf(before.target) === keyOf(plan.target)) {
      if (plan.steering === 'told') this.#plans.set(uid, { ...before, steering: 'told' })
      this.planned.notify(uid)
      return
    }
    this.restore(uid, { ...plan, madeMs: this.#clock.now() })
    this.planned.notify(uid)
  }

  /** Restores a plan of another process, without notification. */
  restore(uid: string, plan: PodPlan): void {
    this.drop(uid)
    this.#plans.set(uid, plan)
    const key = keyOf(plan.target)
    const uids = this.#byTarget.get(key) ?? new Set()
    this.#byTarget.set(key, uids.add(uid))
  }

  *entries(): Generator<readonly [string, PodPlan], void, undefined> {
    for (const uid of this.#plans.keys()) {
      const plan = this.get(uid)
      if (plan !== undefined) yield [uid, plan]
    }
  }

  podsOf(target: PlanTarget): readonly string[] {
    return [...(this.#byTarget.get(keyOf(target)) ?? [])]
  }

  /** @param batch claims of the same decision so far. */
  launched(claim: string, batch: Set<string>): void {
    this.#siblings.set(claim, batch.add(claim))
  }

  /** Names of the existing claims of the same decision, including itself. */
  siblingsOf(claim: string): ReadonlySet<string> {
    return this.#siblings.get(claim) ?? new Set([claim])
  }

  /** Removes the plan; the written nomination is still known as Tenon's. */
  drop(uid: string): void {
    const plan = this.#plans.get(uid)
    if (plan === undefined) return
    this.#plans.delete(uid)
    const key = keyOf(plan.target)
    const uids = this.#byTarget.get(key)
    uids?.delete(uid)
    if (uids?.size === 0) this.#byTarget.delete(key)
  }

  /** Removes plans that the target has no room for, and notifies, so that nominations are removed, too. */
  giveUp(uids: readonly string[]): void {
    const planned = uids.filter((uid) => this.#plans.has(uid))
    if (planned.length === 0) return
    for (const uid of planned) this.drop(uid)
    this.#notifyDropped(planned)
  }

  /** Removes the plans for a deleted target. @param isQuiet without notification. */
  dropTarget(target: PlanTarget, isQuiet = false): void {
    if (target.kind === 'claim') {
      this.#siblings.get(target.name)?.delete(target.name)
      this.#siblings.delete(target.name)
    }
    const uids = this.podsOf(target)
    if (uids.length === 0) return
    for (const uid of uids) this.drop(uid)
    if (!isQuiet) this.#notifyDropped(uids)
  }

  /** Calls the listener with pods whose plan was removed. @returns the unsubscriber. */
  onDropped(listener: (uids: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  written(uid: string): WrittenNomination | undefined {
    return this.#written.get(uid)
  }

  /** @param nomination undefined if no nomination is Tenon's. */
  write(uid: string, nomination: WrittenNomination | undefined): void {
    if (nomination === undefined) this.#written.delete(uid)
    else this.#written.set(uid, nomination)
  }

  forget(uid: string): void {
    this.drop(uid)
    this.#written.delete(uid)
  }

  #notifyDropped(uids: readonly string[]): void {
    for (const listener of this.#listeners) listener(uids)
  }
}
