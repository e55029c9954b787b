/** `provisioningrequest`: finds room for each ProvisioningRequest, all or none, and keeps it (gangs.md 2, 7.6). */
import {
  acceptedCondition,
  beingProvisioned,
  bookingEndedCondition,
  conditionOf,
  counted,
  expiredCondition,
  failedCondition,
  foundCondition,
  isTriedOnce,
  type NewCondition,
  notFoundCondition,
  ownValue,
  type Pod,
  podRequests,
  type ProvisioningRequest,
  type RequestClass,
  requestClassOf,
  requestedPods,
  requestLifeMs,
  requestStageOf,
  templateWaitMs,
} from '@tenon/api'
import { done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { PlacementGate } from '../../placement/gate.ts'
import { KeptPlans } from '../../placement/planned-pods.ts'
import type { Settings } from '../../settings.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { refOf } from '../../state/pods/group-of-pod.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { refOfRequest, type ServedRequest } from '../../state/pods/request-pods.ts'
import { isUnreadable } from '../../state/readable.ts'
import { isSameValue } from '../../state/same-value.ts'
import { onGroupChange } from '../podgroup/standing.ts'
import { plannedNodeOf, type Progress, progressOf, resumePlansOf } from './progress.ts'
import { RequestStatus } from './request-status.ts'
import { resolveRequest, type Resolution } from './request-templates.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'persistentVolumeClaims'>
  readonly state: Pick<ClusterState, 'plans' | 'podGroups' | 'pods' | 'requests'>
  readonly placementGate: Pick<PlacementGate, 'keepsPlans'>
  readonly events: EventRecorder
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'requestBookingMs'>
}

const firstPauseMs = 60_000
const longestPauseMs = 10 * 60_000
const pollMs = 1_000
/** When a decision leads to nothing, another one is requested after this. */
const askAgainMs = 10_000
/** Effectively one event for each pod. */
const consumerDedupeMs = 24 * 60 * 60_000

/** A request of a class that Tenon serves. */
interface OwnRequest {
  readonly request: ProvisioningRequest
  readonly class: RequestClass
  readonly signal: AbortSignal
}

export class ProvisioningRequests implements ControllerSpec {
  readonly name = 'provisioningrequest'
  readonly concurrency = { least: 4, most: 10 }
  readonly #deps: Dependencies
  readonly #status: RequestStatus
  readonly #keptPlans: KeptPlans
  /** Pause before the next attempt, by UID; starts over after a restart. */
  readonly #pauses = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#status = new RequestStatus(deps.client, deps.clock)
    this.#keptPlans = new KeptPlans(deps.state.plans, deps.placementGate)
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    state.requests.changes.add((key) => {
      enqueue(key)
    })
    onGroupChange(caches, state, (id) => {
      const ref = state.podGroups.ref(id)
      if (ref?.source === 'request') enqueue(`${ref.namespace}/${ref.name}`)
    })
  }

  /** @param key `namespace/name`. */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const request = this.#deps.state.requests.get(key)
    const result = request === undefined ? this.#gone(key) : await this.#ofRequest(request, signal)
    this.#reportToConsumers(key)
    return result
  }

  #gone(key: string): ReconcileResult {
    const { requests } = this.#deps.state
    const [namespace = '', name = ''] = key.split('/')
    const ref = refOf('request', namespace, name)
    this.#pauses.delete(requests.served(ref.id)?.request.metadata.uid ?? '')
    requests.drop(ref)
    return done
  }

  async #ofRequest(request: ProvisioningRequest, signal: AbortSignal): Promise<ReconcileResult> {
    const { requests } = this.#deps.state
    if (isUnreadable(request)) {
      requests.leave(request)
      return done
    }
    const of = requestClassOf(request.spec.provisioningClassName)
    const stage = requestStageOf(request)
    if (of !== undefined && stage.kind === 'sought')
      return await this.#seek({ request, class: of, signal }, stage.triedMs)
    this.#pauses.delete(request.metadata.uid ?? '')
    if (of !== undefined && stage.kind === 'booked')
      return await this.#book({ request, class: of, signal }, stage.sinceMs)
    // Another controller serves it, it has ended, or its check is still to come.
    requests.drop(refOfRequest(request), request.metadata.uid)
    return done
  }

  /** @param triedMs when the last attempt found no room; Unix milliseconds. */
  async #seek(sought: OwnRequest, triedMs: number | undefined): Promise<ReconcileResult> {
    const { caches, clock, state } = this.#deps
    const { request } = sought
    const { uid = '' } = request.metadata
    if (conditionOf(request, 'Accepted')?.status !== 'True')
      return await this.#write(sought, acceptedCondition, { kind: 'after', delayMs: pollMs })
    const { atMs: deadlineMs, problem } = deadlineOf(request)
    if (problem !== undefined) this.#warn(request, 'InvalidParameter', problem)
    const leftMs = deadlineMs - clock.now()
    if (leftMs <= 0) return await this.#fail(sought, expiredCondition)
    const pauseMs =
      triedMs === undefined ? 0 : triedMs + (this.#pauses.get(uid) ?? firstPauseMs) - clock.now()
    if (pauseMs > 0) {
      state.requests.drop(refOfRequest(request), uid)
      return { kind: 'after', delayMs: Math.min(pauseMs, leftMs) }
    }
    const served = await this.#served(sought)
    if ('kind' in served) return served
    state.requests.put(served)
    return await this.#follow(sought, progressOf(caches, state, served), Math.min(leftMs, askAgainMs))
  }

  /** What decisions are to be about, or a result while there is nothing to decide. */
  async #served(sought: OwnRequest): Promise<ServedRequest | ReconcileResult> {
    const { caches, clock, state } = this.#deps
    const { request, class: of } = sought
    const ref = refOfRequest(request)
    const found = this.#resolved(request)
    if (found.kind === 'unknown') return { kind: 'after', delayMs: pollMs }
    if (found.kind === 'failed') {
      const createdMs = Date.parse(request.metadata.creationTimestamp ?? '')
      const leftMs = createdMs + templateWaitMs - clock.now()
      if (leftMs <= 0) return await this.#fail(sought, failedCondition('FailedToCreatePods', found.message))
      state.requests.drop(ref, request.metadata.uid)
      return { kind: 'after', delayMs: leftMs }
    }
    const { sets, topologyKey } = found
    const served: ServedRequest = { ref, request, class: of, isBooked: false, pods: sets.flat(), topologyKey }
    if (state.requests.served(ref.id) === undefined) resumePlansOf(caches, this.#keptPlans, served)
    return served
  }

  #resolved(request: ProvisioningRequest): Resolution {
    const { caches, state } = this.#deps
    return resolveRequest(request, state.requests.caches?.podTemplates, caches.persistentVolumeClaims)
  }

  async #follow(sought: OwnRequest, progress: Progress, leftMs: number): Promise<ReconcileResult> {
    const { requests } = this.#deps.state
    const { request, signal } = sought
    switch (progress.kind) {
      case 'undecided': {
        const { id } = refOfRequest(request)
        if (requests.outcomeOf(id) !== undefined) requests.asked.notify(id)
        return { kind: 'after', delayMs: leftMs }
      }
      case 'underWay': {
        const { launched, nodes, ready } = progress
        const message = `It takes ${counted(nodes, 'node')}: ${launched} launched, ${ready} ready`
        const condition: NewCondition = {
          type: 'Provisioned',
          status: 'False',
          reason: beingProvisioned,
          message,
        }
        const isWritten = await this.#status.update(request, condition, signal)
        return { kind: 'after', delayMs: isWritten ? leftMs : pollMs }
      }
      case 'found': {
        const condition = foundCondition(progress.isLaunched)
        const isWritten = await this.#status.write(request, { condition, details: progress.details }, signal)
        return { kind: 'after', delayMs: isWritten ? leftMs : pollMs }
      }
      case 'notFound':
        return await this.#notFound(sought, progress.message)
    }
  }

  async #notFound(sought: OwnRequest, message: string): Promise<ReconcileResult> {
    const { request } = sought
    const { uid = '' } = request.metadata
    const isLast = isTriedOnce(request)
    const condition = notFoundCondition(message, isLast)
    if (isLast) return await this.#fail(sought, condition)
    const before = this.#pauses.get(uid)
    const pauseMs = before === undefined ? firstPauseMs : Math.min(2 * before, longestPauseMs)
    const result = await this.#write(sought, condition, { kind: 'after', delayMs: pauseMs })
    if (result.kind === 'after' && result.delayMs === pauseMs) {
      this.#pauses.set(uid, pauseMs)
      this.#deps.state.requests.drop(refOfRequest(request), uid)
    }
    return result
  }

  async #fail(sought: OwnRequest, condition: NewCondition): Promise<ReconcileResult> {
    const { request } = sought
    const result = await this.#write(sought, condition, done)
    if (result.kind !== 'done') return result
    this.#warn(request, condition.reason ?? '', condition.message ?? '')
    this.#deps.state.requests.drop(refOfRequest(request), request.metadata.uid)
    return done
  }

  /** Keeps the room until pods have taken it or its time is over. @param sinceMs when it was found; Unix milliseconds. */
  async #book(booked: OwnRequest, sinceMs: number): Promise<ReconcileResult> {
    const { clock, settings, state } = this.#deps
    const { request } = booked
    const leftMs = sinceMs + settings.requestBookingMs - clock.now()
    if (leftMs <= 0) return await this.#endBooking(booked, false)
    const consumers = state.requests.boundConsumers(keyOf(request.metadata))
    if (consumers.length >= requestedPods(request)) return await this.#endBooking(booked, true)
    const isKnown = this.#keepRoom(booked, consumers)
    return { kind: 'after', delayMs: isKnown ? leftMs : Math.min(leftMs, pollMs) }
  }

  /** @returns false while the templates are not read yet. */
  #keepRoom({ request, class: of }: OwnRequest, consumers: readonly Pod[]): boolean {
    const { caches, state } = this.#deps
    const ref = refOfRequest(request)
    const found = this.#resolved(request)
    if (found.kind === 'unknown') return false
    const before = state.requests.served(ref.id)
    if (found.kind === 'failed') {
      // Room kept so far stays; a new process does not know which it was.
      if (before === undefined) state.requests.drop(ref, request.metadata.uid)
      return true
    }
    const { sets, topologyKey } = found
    if (before === undefined) resumePlansOf(caches, this.#keptPlans, { ref, pods: sets.flat() })
    const pods = remainingPods(sets, consumers, (pod) => plannedNodeOf(caches, state.plans, pod))
    state.requests.put({ ref, request, class: of, isBooked: true, topologyKey, pods })
    return true
  }

  async #endBooking(booked: OwnRequest, isConsumed: boolean): Promise<ReconcileResult> {
    const { request } = booked
    const result = await this.#write(booked, bookingEndedCondition(isConsumed), done)
    if (result.kind === 'done') this.#deps.state.requests.drop(refOfRequest(request), request.metadata.uid)
    return result
  }

  /** @returns `result`, or a retry when the request has changed meanwhile. */
  async #write(
    { request, signal }: OwnRequest,
    condition: NewCondition,
    result: ReconcileResult,
  ): Promise<ReconcileResult> {
    const isWritten = await this.#status.write(request, { condition }, signal)
    return isWritten ? result : { kind: 'after', delayMs: pollMs }
  }

  #warn(request: ProvisioningRequest, reason: string, message: string): void {
    const { uid = '' } = request.metadata
    this.#deps.events.record({ object: request, type: 'Warning', reason, message, dedupe: [uid, message] })
  }

  /** Explains to pods of the request why no node is launched for them, or that none is kept (gangs.md 2.3). */
  #reportToConsumers(key: string): void {
    const { events, state } = this.#deps
    if (!state.requests.isKnown) return
    for (const pod of state.requests.consumersOf(key)) {
      const standing = state.pods.isUnplaced(pod) ? state.requests.standingOf(pod) : undefined
      if (standing === undefined) continue
      const isHeld = standing.kind === 'held'
      events.record({
        object: pod,
        type: 'Normal',
        reason: isHeld ? 'ConsumesProvisioningRequest' : 'ProvisioningRequestNotBooked',
        message: isHeld
          ? `No node is launched for it: it takes the room of ProvisioningRequest ${key}`
          : `ProvisioningRequest ${key} keeps no room for it; it is scheduled like other pods`,
        dedupe: [pod.metadata.uid ?? '', standing.kind],
        dedupeTtlMs: consumerDedupeMs,
      })
    }
  }
}

const parameter = 'ValidUntilSeconds'

/** @returns `problem` when the parameter is invalid, and therefore ignored. */
function deadlineOf(request: ProvisioningRequest): {
  readonly atMs: number
  readonly problem?: string
} {
  const createdMs = Date.parse(request.metadata.creationTimestamp ?? '')
  const given = ownValue(request.spec.parameters, parameter)
  const lifeMs = createdMs + requestLifeMs
  if (given === undefined) return { atMs: lifeMs }
  if (!/^\d{1,9}$/.test(given) || Number(given) === 0)
    return {
      atMs: lifeMs,
      problem: `spec.parameters.${parameter} "${given}" is ignored: give a number of seconds, such as "600"`,
    }
  return { atMs: Math.min(lifeMs, createdMs + Number(given) * 1000) }
}

/**
 * Placeholder pods whose room no consumer has taken.
 * @param sets the placeholder pods of each set.
 * @param consumers pods of the request that have a node.
 * @param nodeOf name of the Node that a placeholder pod is planned for.
 */
function remainingPods(
  sets: readonly (readonly Pod[])[],
  consumers: readonly Pod[],
  nodeOf: (pod: Pod) => string | undefined,
): readonly Pod[] {
  const left = sets.map((pods) => [...pods])
  const rest: Pod[] = []
  const ordered = consumers.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  // Consumers on a node with kept room take that room first, so that the other placeholders stay where they are.
  for (const consumer of ordered) {
    const place = left
      .filter((pods) => isLike(pods[0], consumer))
      .map((pods) => ({ pods, at: pods.findIndex((pod) => nodeOf(pod) === consumer.spec.nodeName) }))
      .find(({ at }) => at >= 0)
    if (place === undefined) rest.push(consumer)
    else place.pods.splice(place.at, 1)
  }
  for (const consumer of rest) {
    const filled = left.filter((pods) => pods.length > 0)
    const own = filled.find((pods) => isLike(pods[0], consumer)) ?? filled[0]
    own?.pop()
  }
  return left.flat()
}

/** Whether a pod requests the same as those of a set. */
function isLike(model: Pod | undefined, pod: Pod): boolean {
  return model !== undefined && isSameValue(podRequests(model.spec), podRequests(pod.spec))
}
