/** Keeps the room of a ProvisioningRequest until its pods have taken it, or its time is over (gangs.md 2.4, 7.6). */
import {
  bookingEndedCondition,
  type Pod,
  podRequests,
  type ProvisioningRequest,
  type RequestClass,
  requestedPods,
} from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { keyOf, refOfRequest } from '../../state/pods/request-pods.ts'
import type { Settings } from '../../settings.ts'
import type { RequestProgress } from './progress.ts'
import type { RequestStatus } from './request-status.ts'
import type { RequestTemplates } from './request-templates.ts'
import { isSameValue } from '../../state/same-value.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'requests'>
  readonly templates: RequestTemplates
  readonly progress: RequestProgress
  readonly status: RequestStatus
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'requestBookingMs'>
}

/** A request whose room is kept, as it was read. */
interface Booked {
  readonly request: ProvisioningRequest
  readonly class: RequestClass
  readonly signal: AbortSignal
}

const pollMs = 1_000

export class RequestBooking {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param sinceMs when there was room for all of it; Unix milliseconds. */
  async next(booked: Booked, sinceMs: number): Promise<ReconcileResult> {
    const { clock, settings, state } = this.#deps
    const { request } = booked
    const leftMs = sinceMs + settings.requestBookingMs - clock.now()
    if (leftMs <= 0) return await this.#end(booked, false)
    const consumers = state.requests.boundConsumers(keyOf(request))
    if (consumers.length >= requestedPods(request)) return await this.#end(booked, true)
    return this.#keep(booked, consumers)
      ? { kind: 'after', delayMs: leftMs }
      : { kind: 'after', delayMs: Math.min(leftMs, pollMs) }
  }

  /** @returns false while it is not known what is to be kept. */
  #keep({ request, class: of }: Booked, consumers: readonly Pod[]): boolean {
    const { progress, state, templates } = this.#deps
    const ref = refOfRequest(request)
    const found = templates.of(request)
    if (found.kind === 'unknown') return false
    const before = state.requests.served(ref.id)
    if (found.kind === 'failed') {
      // What was kept so far stays; a process that does not know it has nothing to go by.
      if (before === undefined) state.requests.drop(ref, request.metadata.uid)
      return true
    }
    const { sets, topologyKey } = found
    const all = { ref, request, class: of, isBooked: true, topologyKey }
    if (before === undefined) progress.resume({ ...all, pods: sets.flat() })
    const pods = remainingPods(sets, consumers, (pod) => progress.nodeOf(pod))
    state.requests.put({ ...all, pods })
    return true
  }

  async #end({ request, signal }: Booked, isConsumed: boolean): Promise<ReconcileResult> {
    const condition = bookingEndedCondition(isConsumed)
    if (!(await this.#deps.status.write(request, { condition }, signal)))
      return { kind: 'after', delayMs: pollMs }
    this.#deps.state.requests.drop(refOfRequest(request), request.metadata.uid)
    return done
  }
}

/**
 * The pods that stand for room which is left.
 * @param sets the pods of each set.
 * @param consumers pods made for the request that have a node.
 * @param nodeOf the Node on which there is room for a pod that stands for it.
 */
function remainingPods(
  sets: readonly (readonly Pod[])[],
  consumers: readonly Pod[],
  nodeOf: (pod: Pod) => string | undefined,
): readonly Pod[] {
  const left = sets.map((pods) => [...pods])
  const rest: Pod[] = []
  const ordered = consumers.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  // Those that took the place kept for them come first, so that the others stay where they are.
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

/** Whether a pod is as those of a set: it asks for the same. */
function isLike(model: Pod | undefined, pod: Pod): boolean {
  return model !== undefined && isSameValue(podRequests(model.spec), podRequests(pod.spec))
}
