/** ProvisioningRequests that Tenon serves, with the pods that stand for their room and where it is (gangs.md 7.6). */
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

/** A request that decisions are about. */
export interface ServedRequest {
  readonly ref: GroupRef
  readonly request: ProvisioningRequest
  readonly class: RequestClass
  /** Whether its room is kept; else it is sought, all of it or none. */
  readonly isBooked: boolean
  /** Pods that stand for room which no pod has taken yet. */
  readonly pods: readonly Pod[]
  /** All pods go to one domain of this node label. */
  readonly topologyKey: string | undefined
}

/** Where requests and the templates of their pods are read. */
interface RequestCaches {
  readonly requests: Cache<ProvisioningRequest>
  readonly podTemplates: Cache<PodTemplate>
}

/** What the last decision found for a request; undefined while there was none since it is sought. */
export type RequestOutcome = PodGroupResult | undefined

/** What becomes of a pod that is made for the room of a request. */
export type ConsumerStanding =
  /** No node is launched for it. */
  | { readonly kind: 'held'; readonly request: string }
  /** It is like other pods, as its request keeps no room any more. */
  | { readonly kind: 'notBooked'; readonly request: string }

export class RequestPods {
  readonly #pods: Caches['pods']
  readonly #plans: Pick<PodPlans, 'get'>
  /** Whether this process serves requests, as far as their kind is served. */
  #isOn = false
  #caches: RequestCaches | undefined
  #isAbsent = false
  #isKnown = false
  /** By id of the group. */
  readonly #served = new Map<string, ServedRequest>()
  /** By UID of a pod, the id of its request. */
  readonly #owners = new Map<string, string>()
  /** UIDs of requests that were looked at, until all are known. */
  readonly #seen = new Set<string>()
  readonly #outcomes = new Map<string, PodGroupResult>()
  /** By UID of a pod, the provider ID of the instance with its room, as the last pass found it. */
  #hosts: ReadonlyMap<string, string> = new Map()
  /** UIDs of the pods that the last pass was about. */
  #decided: ReadonlySet<string> = new Set()
  /** Ids of requests for which another pass is wanted. */
  readonly asked: Listeners<string> = new Listeners()
  /** Keys, `namespace/name`, of requests that are to be looked at again. */
  readonly changes: Listeners<string> = new Listeners()

  constructor({ pods }: Pick<Caches, 'pods'>, plans: Pick<PodPlans, 'get'>) {
    this.#plans = plans
    this.#pods = pods
  }

  /** Requests are served by this process; until then there are none. */
  serve(): void {
    this.#isOn = true
    this.#pods.onChange((change) => {
      const states = change.kind === 'updated' ? [change.object, change.old] : [change.object]
      for (const key of new Set(states.flatMap((pod) => consumedBy(pod) ?? []))) this.changes.notify(key)
    })
  }

  /** Requests are read here from now on. */
  follow(caches: RequestCaches): void {
    this.#caches = caches
    this.#isAbsent = false
    const { requests, podTemplates } = caches
    requests.onChange(({ object }) => {
      this.changes.notify(keyOf(object))
    })
    podTemplates.onChange(({ object: { metadata } }) => {
      for (const request of requests.list())
        if (
          request.metadata.namespace === metadata.namespace &&
          request.spec.podSets.some(({ podTemplateRef }) => podTemplateRef.name === metadata.name)
        )
          this.changes.notify(keyOf(request))
    })
  }

  /** The kind is not served, or may not be read. */
  setAbsent(): void {
    this.#isAbsent = true
  }

  get isAbsent(): boolean {
    return !this.#isOn || (this.#isAbsent && this.#caches === undefined)
  }

  /** Undefined until it is known that they are served. */
  get caches(): RequestCaches | undefined {
    return this.#caches
  }

  /** Whether all requests and templates are known, and each request was looked at. */
  get isKnown(): boolean {
    if (this.isAbsent || this.#isKnown) return true
    const all = this.#caches
    if (all === undefined || !all.requests.isSynced || !all.podTemplates.isSynced) return false
    // Those that come later are seen as they come.
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

  /** Decisions are about the request from now on; asks for one unless nothing has changed. */
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
    // What was decided about a request that was sought holds for its booking.
    if (before === undefined || !isBooked) this.#outcomes.delete(ref.id)
    for (const pod of before?.pods ?? []) this.#owners.delete(pod.metadata.uid ?? '')
    for (const pod of pods) this.#owners.set(pod.metadata.uid ?? '', ref.id)
    this.asked.notify(ref.id)
  }

  /** The request cannot be read: what was decided about it, and what is kept, stays. */
  leave({ metadata: { uid } }: ProvisioningRequest): void {
    if (uid !== undefined && !this.#isKnown) this.#seen.add(uid)
  }

  /** Nothing is decided about the request. */
  drop(ref: GroupRef, uid?: string): void {
    if (uid !== undefined && !this.#isKnown) this.#seen.add(uid)
    const before = this.#served.get(ref.id)
    if (before === undefined) return
    this.#served.delete(ref.id)
    this.#outcomes.delete(ref.id)
    for (const pod of before.pods) this.#owners.delete(pod.metadata.uid ?? '')
    // Other pods may use the room that it kept.
    this.asked.notify(ref.id)
  }

  /** @param id of the group. */
  served(id: string): ServedRequest | undefined {
    return this.#served.get(id)
  }

  all(): readonly ServedRequest[] {
    return [...this.#served.values()].toSorted(byAge)
  }

  /** Whether a pod with this UID stands for room. */
  has(uid: string): boolean {
    return this.#owners.has(uid)
  }

  /**
   * How many of its pods run together, as long as its launches are to stay: 0 once there is room for all, undefined
   * when nothing is sought for it.
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
   * A pass has ended.
   * @param about the pods that it was about.
   * @param hosts by UID of a pod, the provider ID of the instance that is there with room for it.
   * @returns whether room is kept elsewhere than before.
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
    for (const { request } of this.#served.values()) this.changes.notify(keyOf(request))
    return before.size !== hosts.size || [...hosts].some(([uid, host]) => before.get(uid) !== host)
  }

  /** By UID of a pod, the provider ID of the instance that has room for it. */
  hosts(): ReadonlyMap<string, string> {
    return this.#hosts
  }

  /** Whether room may be kept on nodes of which nobody knows yet. */
  get isUndecided(): boolean {
    if (!this.isKnown) return true
    return [...this.#served.values()].some(
      ({ isBooked, pods }) => isBooked && pods.some(({ metadata }) => !this.#decided.has(metadata.uid ?? '')),
    )
  }

  /** Whether there are requests whose room anybody may keep. */
  get areServed(): boolean {
    return this.#served.size > 0
  }

  /** Requests that keep room on an instance, or seek it there. */
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

  /** Pods made for the room of a request. @param key `namespace/name`. */
  consumersOf(key: string): readonly Pod[] {
    return this.#isOn ? this.#pods.byIndex(indexes.byProvisioningRequest, key) : []
  }

  /** Pods made for the room of a request that have a node, or had one. */
  boundConsumers(key: string): readonly Pod[] {
    return this.consumersOf(key).filter((pod) => (pod.spec.nodeName ?? '') !== '')
  }

  /** Undefined for a pod that is made for no request, or while requests are not served. */
  standingOf(pod: Pod): ConsumerStanding | undefined {
    if (this.isAbsent) return undefined
    const key = consumedBy(pod)
    if (key === undefined) return undefined
    // What is not known yet is not gone.
    if (!this.isKnown) return { kind: 'held', request: key }
    const request = this.get(key)
    // What it says cannot be read, and may be that room is kept.
    if (request !== undefined && isUnreadable(request)) return { kind: 'held', request: key }
    const className = consumedClassOf(pod) ?? request?.spec.provisioningClassName
    const of = className === undefined ? 'atomic' : requestClassOf(className)
    if (of === undefined) return undefined
    if (of === 'check') return { kind: 'held', request: key }
    const isServed = request !== undefined && requestStageOf(request).kind !== 'ended'
    return { kind: isServed ? 'held' : 'notBooked', request: key }
  }
}

/** `namespace/name`. */
export function keyOf({ metadata: { name, namespace = '' } }: ProvisioningRequest): string {
  return `${namespace}/${name}`
}

export function refOfRequest({ metadata: { name, namespace = '' } }: ProvisioningRequest): GroupRef {
  return refOf('request', namespace, name)
}

function byAge(a: ServedRequest, b: ServedRequest): number {
  const createdOf = ({ request }: ServedRequest) => request.metadata.creationTimestamp ?? ''
  const [left, right] = [`${createdOf(a)} ${a.ref.id}`, `${createdOf(b)} ${b.ref.id}`]
  return left < right ? -1 : left > right ? 1 : 0
}
