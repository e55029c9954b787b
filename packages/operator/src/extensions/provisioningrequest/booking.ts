/** Keeps the room of a ProvisioningRequest until its pods have taken it, or its time is over (gangs.md 2.4, 7.6). */
import {
  bookingEndedCondition,
  type Pod,
  type ProvisioningRequest,
  requestedPods,
  type RequestClass,
} from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { keyOf, refOfRequest } from '../../state/pods/request-pods.ts'
import type { Settings } from '../../settings.ts'
import { remainingPods } from './consumption.ts'
import type { RequestProgress } from './progress.ts'
import type { RequestStatus } from './request-status.ts'
import type { RequestTemplates } from './request-templates.ts'

/** What this file works with. */
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
