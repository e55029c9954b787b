/** ProvisioningRequests in the loop: `--enable-provisioning-requests` (gangs.md 2 to 4). */
import {
  conditionOf,
  consumedBy,
  isConditionTrue,
  type NewCondition,
  ownValue,
  type Pod,
  provisioningClasses,
  type ProvisioningRequest,
  type RequestClass,
  requestClassNames,
  requestClassOf,
  requestStageOf,
  type RequestState,
  requestStateOf,
  templateWaitMs,
} from '@tenon/api'
import type { PodReader } from '@tenon/filters'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { Explanations } from '../status/explanations.ts'
import type { ClusterCache, ClusterWriter, LoopView, Reporting } from '../model.ts'
import type { AutoscalerOptions } from '../options/options.ts'
import type { PlacementHints } from '../pods/pending-pods.ts'
import type { ScaleUp, ScaleUpQuestion } from '../scale-up/scale-up.ts'
import { bookingMs, RequestEndings } from './endings.ts'
import { keyOfRequest, KnownRequests, uidOf } from './known-requests.ts'
import { RequestPauses } from './pauses.ts'
import { placeAll } from './placing.ts'
import { RequestRooms } from './request-room.ts'
import { RequestSeeking, type SeekingResult, type SoughtRequest } from './seeking.ts'

/** Reads of the cluster. */
interface RequestSources {
  readonly cache: Pick<ClusterCache, 'requests' | 'volumes' | 'pods'>
  readonly reader: PodReader
}

/** Outputs about requests. */
interface RequestReporting extends Reporting {
  readonly debugging: { readonly explanations: Explanations }
}

interface Dependencies {
  readonly options: Pick<AutoscalerOptions, 'requests'>
  readonly sources: RequestSources
  readonly writer: Pick<ClusterWriter, 'writeRequestConditions' | 'deleteRequest'>
  readonly scaleUp: Pick<ScaleUp, 'whole'>
  readonly reporting: RequestReporting
  readonly slicing: Slicing & { readonly clock: Clock }
}

/** Maximum pods with an event in one loop. */
const maxReported = 50
/** Pods between two checks of the clock. */
const atOnce = 200

export class ProvisioningRequests {
  readonly #deps: Dependencies
  readonly #known: KnownRequests
  readonly #rooms: RequestRooms
  readonly #endings: RequestEndings
  readonly #seeking: RequestSeeking
  readonly #pauses: RequestPauses
  readonly #hints: PlacementHints = new Map()
  /** Whether the last loop served requests rather than pending pods. */
  #wasTurn = false
  #lastMs: number | undefined

  constructor(deps: Dependencies) {
    const { options, reporting, scaleUp, slicing, sources, writer } = deps
    const { logger } = reporting
    this.#deps = deps
    this.#known = new KnownRequests({ cache: sources.cache, writer, clock: slicing.clock, logger })
    this.#rooms = new RequestRooms(sources.cache, sources.reader)
    this.#endings = new RequestEndings({ known: this.#known, rooms: this.#rooms })
    this.#seeking = new RequestSeeking({ options: options.requests, known: this.#known, scaleUp, slicing })
    this.#pauses = new RequestPauses(options.requests)
  }

  /** When a request was last examined; undefined = never. */
  get lastMs(): number | undefined {
    return this.#lastMs
  }

  /** Begins a loop: ends expired requests, and updates metrics. */
  async begin(nowMs: number, signal: AbortSignal): Promise<void> {
    const { slicing, sources } = this.#deps
    const all = this.#known.list()
    this.#rooms.keepOnly(all)
    const served = all.filter((request) => this.#classOf(request) !== undefined)
    if (served.length > 0) {
      const bound = await inSlices(boundConsumers(sources.cache.pods()), slicing)
      for (const [request, condition] of await this.#endings.end(served, { nowMs, bound }, signal))
        this.#report(request, condition)
    }
    this.#show(nowMs)
  }

  /** Records events for pods that use the capacity of a request: no node is requested for them. */
  reportConsumers(pods: readonly Pod[]): void {
    const { events, debugging } = this.#deps.reporting
    const text = (pod: Pod) => `it takes the room of ProvisioningRequest ${consumedBy(pod) ?? ''}`
    for (const pod of pods) debugging.explanations.waiting([pod], `no node is asked for: ${text(pod)}`)
    for (const pod of pods.slice(0, maxReported))
      events.object(pod, 'Normal', 'ConsumesProvisioningRequest', `No node is launched for it: ${text(pod)}`)
  }

  /** Places the pods of all requests with reserved capacity. */
  async book({ snapshot }: LoopView): Promise<void> {
    const { options, slicing } = this.#deps
    const booked = this.#known
      .list()
      .filter(
        (request) =>
          requestStageOf(request).kind === 'booked' &&
          bookedClassOf(request, options.requests.processorInstance) !== undefined,
      )
    const uids = new Set<string>()
    for (const request of booked) {
      const room = this.#rooms.of(request)
      if (room.kind === 'failed') continue
      for (const pod of room.sets.flat()) uids.add(pod.metadata.uid ?? '')
      const left = await inSlices(placeAll(room.sets, snapshot, this.#hints), slicing)
      if (left.length > 0)
        this.#explain(request, `room is kept for its pods, but ${left.length} of them find none any more`)
    }
    for (const uid of this.#hints.keys()) if (!uids.has(uid)) this.#hints.delete(uid)
  }

  /** Whether this loop serves requests; they and pending pods take turns. */
  isTurn(arePodsWaiting: boolean, nowMs: number): boolean {
    const isWanted = this.#waiting(nowMs).length > 0
    this.#wasTurn = isWanted && !(arePodsWaiting && this.#wasTurn)
    return this.#wasTurn
  }

  /**
   * Looks for capacity for the oldest waiting request, or for a batch.
   * @returns whether nodes were requested.
   */
  async serve(question: Omit<ScaleUpQuestion, 'pods'>, signal: AbortSignal): Promise<boolean> {
    const { batchProcessing } = this.#deps.options.requests
    const { nowMs } = question.view
    const waiting = this.#waiting(nowMs)
    const [first] = waiting
    if (first === undefined) return false
    this.#lastMs = nowMs
    const results =
      batchProcessing && first.class === 'check'
        ? await this.#seeking.batch(
            waiting.filter((each) => each.class === 'check'),
            question.view,
            signal,
          )
        : [await this.#seeking.one(first, question, signal)]
    for (const result of results) this.#settle(result)
    this.#show(nowMs)
    return results.some(({ groups }) => groups !== undefined)
  }

  #settle({ request, answer, groups }: SeekingResult): void {
    if (groups !== undefined)
      this.#deps.reporting.events.object(
        request,
        'Normal',
        'TriggeredScaleUp',
        `ProvisioningRequest triggered scale-up: [${groups}]`,
      )
    if (answer === undefined) return
    const uid = uidOf(request)
    if (answer.type === 'Provisioned' && answer.status === 'False') this.#pauses.failed(uid)
    else this.#pauses.forget(uid)
    this.#report(request, answer)
  }

  #report(request: ProvisioningRequest, { type, status, reason = type, message = '' }: NewCondition): void {
    const isBad = type === 'Failed' || status === 'False'
    this.#deps.reporting.events.object(request, isBad ? 'Warning' : 'Normal', reason, message)
    this.#deps.reporting.logger.info('a ProvisioningRequest has changed', {
      request: keyOfRequest(request),
      type,
      status,
      reason,
    })
  }

  /** Requests to serve now, oldest first. */
  #waiting(nowMs: number): readonly SoughtRequest[] {
    return this.#known.list().flatMap((request): readonly SoughtRequest[] => {
      const of = this.#classOf(request)
      const stage = requestStageOf(request)
      if (of === undefined || stage.kind !== 'sought') return []
      if (!this.#pauses.isOver(uidOf(request), stage.triedMs, nowMs)) return []
      const room = this.#rooms.of(request)
      const createdMs = Date.parse(request.metadata.creationTimestamp ?? '')
      if (room.kind === 'failed' && nowMs < createdMs + templateWaitMs) return []
      return [{ request, class: of, room }]
    })
  }

  #classOf(request: ProvisioningRequest) {
    return servedClassOf(request, this.#deps.options.requests.processorInstance)
  }

  /** Updates metrics and explanations. */
  #show(nowMs: number): void {
    const { metrics } = this.#deps.reporting
    const sought = new Set(this.#waiting(nowMs).map(({ request }) => uidOf(request)))
    const counts = new Map<string, { readonly class: string; readonly state: RequestState; count: number }>()
    for (const request of this.#known.list()) {
      const of = this.#classOf(request)
      if (of === undefined) continue
      const state = requestStateOf(request, sought.has(uidOf(request)))
      this.#explain(request, this.#standingOf(request))
      const found = counts.get(`${of} ${state}`) ?? { class: requestClassNames[of], state, count: 0 }
      counts.set(`${of} ${state}`, { ...found, count: found.count + 1 })
    }
    metrics.clear('provisioning_requests_count')
    for (const { class: className, state, count } of counts.values())
      metrics.set('provisioning_requests_count', count, { class: className, state })
  }

  #standingOf(request: ProvisioningRequest): string {
    const stage = requestStageOf(request)
    const said = (type: string) => {
      const condition = conditionOf(request, type)
      return condition === undefined ? '' : `${condition.reason}: ${condition.message}`
    }
    switch (stage.kind) {
      case 'booked':
        return `room is kept for its pods until ${new Date(stage.sinceMs + bookingMs).toISOString()}`
      case 'ended':
        return `it has ended (${said(isConditionTrue(request, 'Failed') ? 'Failed' : 'BookingExpired')})`
      case 'unknown':
        return 'its condition Provisioned is Unknown, which nobody here sets: it is left alone'
      case 'sought': {
        if (stage.triedMs === undefined) return 'room for its pods is sought in one of the next loops'
        const again = new Date(this.#pauses.endMs(uidOf(request), stage.triedMs)).toISOString()
        return `no room was found for its pods (${said('Provisioned')}); tried again after ${again}`
      }
    }
  }

  #explain(request: ProvisioningRequest, why: string): void {
    this.#deps.reporting.debugging.explanations.request(keyOfRequest(request), why)
  }
}

/** Pods of a request that have or had a node, by `namespace/name` of the request. */
function* boundConsumers(pods: readonly Pod[]): Generator<void, ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for (const [index, pod] of pods.entries()) {
    if (index % atOnce === atOnce - 1) yield
    const key = (pod.spec.nodeName ?? '') === '' ? undefined : consumedBy(pod)
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

const parameter = 'processorInstance'

/**
 * The class of a request that this process serves. With an instance: only check-capacity requests that name it, as a
 * parameter or as a prefix of their class. Without: all that name none.
 * @param instance of `--check-capacity-processor-instance`; may be empty.
 */
function servedClassOf({ spec }: ProvisioningRequest, instance: string): RequestClass | undefined {
  const { provisioningClassName, parameters } = spec
  const named = ownValue(parameters, parameter) ?? ''
  if (instance !== '') {
    if (provisioningClassName === instance + provisioningClasses.check) return 'check'
    return provisioningClassName === provisioningClasses.check && named === instance ? 'check' : undefined
  }
  const of = requestClassOf(provisioningClassName)
  return of === 'check' && named !== '' ? undefined : of
}

/** The class of a request whose capacity counts, whoever serves it. */
function bookedClassOf(request: ProvisioningRequest, instance: string): RequestClass | undefined {
  return requestClassOf(request.spec.provisioningClassName) ?? servedClassOf(request, instance)
}
