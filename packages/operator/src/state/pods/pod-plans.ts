/** Which node each waiting pod is meant for, and what was said about it (planned-placement.md). */
import type { PodSpec } from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { isActive } from './pods.ts'

/** On NodeClaims: the pods each was launched for, as the first parts of their UIDs. */
export const plannedPodsAnnotation = 'tenon.sh/planned-pods'

/** A claim that was made for the pod, or kept for it, or a Node without a claim. */
export type PlanTarget =
  | { readonly kind: 'claim'; readonly name: string }
  | { readonly kind: 'node'; readonly name: string }

/**
 * What the Kubernetes scheduler is to know. `told`: the node the pod is meant for. `filler`: nothing, as the pod takes
 * room that others leave, whose nodes it waits for all the same. `free`: nothing, the pod may go anywhere.
 */
type Steering = 'told' | 'filler' | 'free'

export interface PodPlan {
  readonly target: PlanTarget
  /** Unix milliseconds. */
  readonly madeMs: number
  readonly steering: Steering
  /** Place among the pods of its decision, from 0, in the order in which the scheduler is told. */
  readonly turn?: number
  /** What the pod asked for; absent when that is not known any more. */
  readonly spec?: PodSpec
}

/** The nomination of a pod that this process wrote last. */
export interface WrittenNomination {
  readonly node: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** Whether the API server took it. */
  readonly isAccepted: boolean
  /** Of the pod as the API server answered. */
  readonly resourceVersion?: string
}

const keyOf = ({ kind, name }: PlanTarget) => `${kind}/${name}`

/** Plans by pod UID. One lasts until its pod is bound or gone, its target goes away, or it has aged. */
export class PodPlans {
  readonly #clock: Pick<Clock, 'now'>
  readonly #maxAgeMs: number
  readonly #plans = new Map<string, PodPlan>()
  readonly #byTarget = new Map<string, Set<string>>()
  /** Names of the claims that one decision launched, by each of them. */
  readonly #siblings = new Map<string, Set<string>>()
  readonly #written = new Map<string, WrittenNomination>()
  readonly #listeners = new Set<(uids: readonly string[]) => void>()
  /** UIDs of pods whose plan is new or confirmed. */
  readonly planned: Listeners<string> = new Listeners()

  constructor(clock: Pick<Clock, 'now'>, maxAgeMs: number) {
    this.#clock = clock
    this.#maxAgeMs = maxAgeMs
  }

  /** Gives plans up whose pod ends or goes away, and those whose target goes away. */
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
      // A launch that failed would likely fail again at once: its pods wait for their usual turn.
      const isQuiet = (status?.providerID ?? '') === ''
      this.dropTarget({ kind: 'claim', name: metadata.name }, isQuiet)
    })
  }

  get(uid: string): PodPlan | undefined {
    const plan = this.#plans.get(uid)
    if (plan === undefined || this.#clock.now() - plan.madeMs < this.#maxAgeMs) return plan
    this.drop(uid)
    this.#tell([uid])
    return undefined
  }

  /** A plan for the same target goes on, with its age. */
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

  /** Takes over a plan that another process made; nobody is told. */
  restore(uid: string, plan: PodPlan): void {
    this.drop(uid)
    this.#plans.set(uid, plan)
    const key = keyOf(plan.target)
    const uids = this.#byTarget.get(key) ?? new Set()
    this.#byTarget.set(key, uids.add(uid))
  }

  /** Every plan that holds now. */
  *entries(): Generator<readonly [string, PodPlan], void, undefined> {
    for (const uid of this.#plans.keys()) {
      const plan = this.get(uid)
      if (plan !== undefined) yield [uid, plan]
    }
  }

  /** UIDs of the pods planned for a target. */
  podsOf(target: PlanTarget): readonly string[] {
    return [...(this.#byTarget.get(keyOf(target)) ?? [])]
  }

  /** Notes a claim that a decision launched. @param batch the claims of that decision so far. */
  launched(claim: string, batch: Set<string>): void {
    this.#siblings.set(claim, batch.add(claim))
  }

  /** Names of the claims that are there still and were launched by the same decision, itself among them. */
  siblingsOf(claim: string): ReadonlySet<string> {
    return this.#siblings.get(claim) ?? new Set([claim])
  }

  /** Takes back a pod's plan; what was written about the pod is still known as Tenon's. */
  drop(uid: string): void {
    const plan = this.#plans.get(uid)
    if (plan === undefined) return
    this.#plans.delete(uid)
    const key = keyOf(plan.target)
    const uids = this.#byTarget.get(key)
    uids?.delete(uid)
    if (uids?.size === 0) this.#byTarget.delete(key)
  }

  /** Takes back plans that the target has no room for; what was written about their pods is taken back, too. */
  giveUp(uids: readonly string[]): void {
    const planned = uids.filter((uid) => this.#plans.has(uid))
    if (planned.length === 0) return
    for (const uid of planned) this.drop(uid)
    this.#tell(planned)
  }

  /** The target goes away: its pods are planned anew. @param isQuiet when nobody is told. */
  dropTarget(target: PlanTarget, isQuiet = false): void {
    if (target.kind === 'claim') {
      this.#siblings.get(target.name)?.delete(target.name)
      this.#siblings.delete(target.name)
    }
    const uids = this.podsOf(target)
    if (uids.length === 0) return
    for (const uid of uids) this.drop(uid)
    if (!isQuiet) this.#tell(uids)
  }

  /** Tells of pods whose plan came to nothing; answers the unsubscriber. */
  onDropped(listener: (uids: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  written(uid: string): WrittenNomination | undefined {
    return this.#written.get(uid)
  }

  /** Notes what is written; undefined = nothing that stands is Tenon's. */
  write(uid: string, nomination: WrittenNomination | undefined): void {
    if (nomination === undefined) this.#written.delete(uid)
    else this.#written.set(uid, nomination)
  }

  /** The pod is bound or gone. */
  forget(uid: string): void {
    this.drop(uid)
    this.#written.delete(uid)
  }

  #tell(uids: readonly string[]): void {
    for (const listener of this.#listeners) listener(uids)
  }
}
