/** ProvisioningRequests with their placeholder pods, and the nodes with room for them (gangs.md 7.6). */
import {
  consumedBy,
  consumedClassOf,
  isConditionTrue,
  type NodeClaim,
  type Pod,
  type PodTemplate,
  type ProvisioningRequest,
  type RequestClass,
  requestClassOf,
  requestStageOf,
} from '@tenon/api'
import type { PodGroupResult } from '@tenon/engine'
import type { Cache } from '@tenon/kube'
import { Listeners } from '@tenon/runtime'
import { type Caches, indexes } from '../caches.ts'
import { isUnreadable } from '../readable.ts'
import { isSameValue } from '../same-value.ts'
import { type GroupRef, refOf } from './group-of-pod.ts'
import type { PodPlans } from './pod-plans.ts'
import { keyOf } from './pods.ts'

export interface ServedRequest {
  readonly ref: GroupRef
  readonly request: ProvisioningRequest
  readonly class: RequestClass
  /** Whether its room is kept; else room is sought for all of its pods or none. */
  readonly isBooked: boolean
  /** Placeholders for room that no pod has taken yet. */
  readonly pods: readonly Pod[]
  /** All pods go to one domain of this node label. */
  readonly topologyKey: string | undefined
}

interface RequestCaches {
  readonly requests: Cache<ProvisioningRequest>
  readonly podTemplates: Cache<PodTemplate>
}

/** Result of the last decision; undefined if there was none since the request is sought. */
export type RequestOutcome = PodGroupResult | undefined

/** How a pod that consumes a request is treated. */
export type ConsumerStanding =
  /** No node is launched for it. */
  | { readonly kind: 'held'; readonly request: string }
  /** It is an ordinary pod, as the request keeps no room. */
  | { readonly kind: 'notBooked'; readonly request: string }

export class RequestPods {
  readonly #pods: Caches['pods']
  readonly #plans: Pick<PodPlans, 'get'>
  #isOn = false
  #caches: RequestCaches | undefined
  #isAbsent = false
  #isKnown = false
  /** By id of the group. */
  readonly #served = new Map<string, ServedRequest>()
  /** Id of the request by UID of the placeholder pod. */
  readonly #owners = new Map<string, string>()
  /** UIDs of requests that were reconciled, until all are known. */
  readonly #seen = new Set<string>()
  readonly #outcomes = new Map<string, PodGroupResult>()
  /** Provider ID of the instance with room, by UID of the pod, as of the last pass. */
  #hosts: ReadonlyMap<string, string> = new Map()
  /** UIDs of the pods of the last pass. */
  #decided: ReadonlySet<string> = new Set()
  /** Requests for a scheduling pass, by id of the request. */
  readonly asked: Listeners<string> = new Listeners()
  /** Keys `namespace/name` of requests to reconcile. */
  readonly changes: Listeners<string> = new Listeners()

  constructor({ pods }: Pick<Caches, 'pods'>, plans: Pick<PodPlans, 'get'>) {
    this.#plans = plans
    this.#pods = pods
  }

  serve(): void {
    this.#isOn = true
    this.#pods.onChange((change) => {
      const states = change.kind === 'updated' ? [change.object, change.old] : [change.object]
      for (const key of new Set(states.flatMap((pod) => consumedBy(pod) ?? []))) this.changes.notify(key)
    })
  }

  follow(caches: RequestCaches): void {
    this.#caches = caches
    this.#isAbsent = false
    const { requests, podTemplates } = caches
    requests.onChange(({ object }) => {
      this.changes.notify(keyOf(object.metadata))
    })
    podTemplates.onChange(({ object: { metadata } }) => {
      for (const request of requests.list())
        if (
          request.metadata.namespace === metadata.namespace &&
          request.spec.podSets.some(({ podTemplateRef }) => podTemplateRef.name === metadata.name)
        )
          this.changes.notify(keyOf(request.metadata))
    })
  }

  /** The kind is not served or may not be read. */
  setAbsent(): void {
    this.#isAbsent = true
  }

  get isAbsent(): boolean {
    return !this.#isOn || (this.#isAbsent && this.#caches === undefined)
  }

  /** Undefined until the kind is known to be served. */
  get caches(): RequestCaches | undefined {
    return this.#caches
  }

  /** Whether all requests and templates are known, and each request was reconciled once. */
  get isKnown(): boolean {
    if (this.isAbsent || this.#isKnown) return true
    const all = this.#caches
    if (all === undefined || !all.requests.isSynced || !all.podTemplates.isSynced) return false
    this.#isKnown = all.requests.list().every(({ metadata }) => this.#seen.has(metadata.uid ?? ''))
    if (this.#isKnown) this.#seen.clear()
    return this.#isKnown
  }

  /** @param key `namespace/name`. */
  get(key: string): ProvisioningRequest | undefined {
    const [namespace = '', name = ''] = key.split('/')
    return this.#caches?.requests.get({ namespace, name })
  }

  list(): readonly ProvisioningRequest[] {
    return this.#caches?.requests.list() ?? []
  }

  /** Includes the request in decisions, and asks for one if something has changed. */
  put(served: ServedRequest): void {
    const { ref, request, isBooked, pods } = served
    if (!this.#isKnown) this.#seen.add(request.metadata.uid ?? '')
    const before = this.#served.get(ref.id)
    this.#served.set(ref.id, served)
    const isSame =
      before?.request.metadata.uid === request.metadata.uid &&
      before?.isBooked === isBooked &&
      isSameValue(before?.pods, pods)
    if (isSame) return
    // The outcome of the search stays valid for the booking.
    if (before === undefined || !isBooked) this.#outcomes.delete(ref.id)
    for (const pod of before?.pods ?? []) this.#owners.delete(pod.metadata.uid ?? '')
    for (const pod of pods) this.#owners.set(pod.metadata.uid ?? '', ref.id)
    this.asked.notify(ref.id)
  }

  /** The request is invalid: decisions and kept room stay. */
  leave({ metadata: { uid } }: ProvisioningRequest): void {
    if (uid !== undefined && !this.#isKnown) this.#seen.add(uid)
  }

  /** Removes the request from decisions. */
  drop(ref: GroupRef, uid?: string): void {
    if (uid !== undefined && !this.#isKnown) this.#seen.add(uid)
    const before = this.#served.get(ref.id)
    if (before === undefined) return
    this.#served.delete(ref.id)
    this.#outcomes.delete(ref.id)
    for (const pod of before.pods) this.#owners.delete(pod.metadata.uid ?? '')
    // Other pods may use its room.
    this.asked.notify(ref.id)
  }

  /** @param id of the group. */
  served(id: string): ServedRequest | undefined {
    return this.#served.get(id)
  }

  all(): readonly ServedRequest[] {
    return [...this.#served.values()].toSorted(byAge)
  }

  /** Whether this is the UID of a placeholder pod. */
  has(uid: string): boolean {
    return this.#owners.has(uid)
  }

  /**
   * How many of its pods must be placed together: 0 once there is room for all, undefined if nothing is launched for it.
   */
  minCountOf({
    id,
    namespace,
    name,
  }: GroupRef): { readonly request: ProvisioningRequest; readonly minCount: number } | undefined {
    const request = this.get(`${namespace}/${name}`)
    if (request === undefined || isUnreadable(request) || isConditionTrue(request, 'Failed')) return undefined
    if (isConditionTrue(request, 'Provisioned')) return { request, minCount: 0 }
    const served = this.#served.get(id)
    return served === undefined ? undefined : { request, minCount: served.pods.length }
  }

  outcomeOf(id: string): RequestOutcome {
    return this.#outcomes.get(id)
  }

  /**
   * Stores the result of a pass.
   * @param about its placeholder pods.
   * @param hosts provider ID of the existing instance with room, by UID of the pod.
   * @returns whether room has moved.
   */
  decided(
    about: readonly Pod[],
    hosts: ReadonlyMap<string, string>,
    outcomes: readonly PodGroupResult[],
  ): boolean {
    const before = this.#hosts
    this.#decided = new Set(about.map(({ metadata }) => metadata.uid ?? ''))
    this.#hosts = hosts
    for (const outcome of outcomes)
      if (this.#served.get(outcome.id)?.isBooked === false) this.#outcomes.set(outcome.id, outcome)
    for (const { request } of this.#served.values()) this.changes.notify(keyOf(request.metadata))
    return before.size !== hosts.size || [...hosts].some(([uid, host]) => before.get(uid) !== host)
  }

  /** Provider ID of the instance with room, by UID of the pod. */
  hosts(): ReadonlyMap<string, string> {
    return this.#hosts
  }

  /** Whether it is unknown yet on which nodes room is kept. */
  get isUndecided(): boolean {
    if (!this.isKnown) return true
    return [...this.#served.values()].some(
      ({ isBooked, pods }) => isBooked && pods.some(({ metadata }) => !this.#decided.has(metadata.uid ?? '')),
    )
  }

  get areServed(): boolean {
    return this.#served.size > 0
  }

  /** Requests with room, kept or planned, on an instance. */
  keptOn({
    claim,
    providerID,
  }: {
    readonly claim: NodeClaim | undefined
    readonly providerID: string
  }): readonly ServedRequest[] {
    if (this.#served.size === 0) return []
    const isHere = ({ metadata: { uid = '' } }: Pod) => {
      const target = this.#plans.get(uid)?.target
      if (target?.kind === 'claim') return target.name === claim?.metadata.name
      return this.#hosts.get(uid) === providerID
    }
    return [...this.#served.values()].filter(({ pods }) => pods.some(isHere))
  }

  /** Pods that consume a request. @param key `namespace/name`. */
  consumersOf(key: string): readonly Pod[] {
    return this.#isOn ? this.#pods.byIndex(indexes.byProvisioningRequest, key) : []
  }

  /** Consumers that are or were bound. */
  boundConsumers(key: string): readonly Pod[] {
    return this.consumersOf(key).filter((pod) => (pod.spec.nodeName ?? '') !== '')
  }

  /** Undefined for an ordinary pod, or while requests are not served. */
  standingOf(pod: Pod): ConsumerStanding | undefined {
    if (this.isAbsent) return undefined
    const key = consumedBy(pod)
    if (key === undefined) return undefined
    // Unknown is not deleted.
    if (!this.isKnown) return { kind: 'held', request: key }
    const request = this.get(key)
    // An invalid request may keep room.
    if (request !== undefined && isUnreadable(request)) return { kind: 'held', request: key }
    const className = consumedClassOf(pod) ?? request?.spec.provisioningClassName
    const of = className === undefined ? 'atomic' : requestClassOf(className)
    if (of === undefined) return undefined
    if (of === 'check') return { kind: 'held', request: key }
    const isServed = request !== undefined && requestStageOf(request).kind !== 'ended'
    return { kind: isServed ? 'held' : 'notBooked', request: key }
  }
}

export function refOfRequest({ metadata: { name, namespace = '' } }: ProvisioningRequest): GroupRef {
  return refOf('request', namespace, name)
}

function byAge(a: ServedRequest, b: ServedRequest): number {
  const createdOf = ({ request }: ServedRequest) => request.metadata.creationTimestamp ?? ''
  const [left, right] = [`${createdOf(a)} ${a.ref.id}`, `${createdOf(b)} ${b.ref.id}`]
  return left < right ? -1 : left > right ? 1 : 0
}
