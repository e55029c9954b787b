/** Seeks the room of a ProvisioningRequest: all of it or none (gangs.md 2.2, 7.6). */
import {
  acceptedCondition,
  beingProvisioned,
  conditionOf,
  expiredCondition,
  failedCondition,
  foundCondition,
  isTriedOnce,
  type NewCondition,
  notFoundCondition,
  ownValue,
  type ProvisioningRequest,
  type RequestClass,
  requestLifeMs,
  templateWaitMs,
} from '@tenon/api'
import { done, type EventRecorder, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { refOfRequest, type ServedRequest } from '../../state/pods/request-pods.ts'
import type { Progress, RequestProgress } from './progress.ts'
import type { RequestStatus } from './request-status.ts'
import type { RequestTemplates } from './request-templates.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'requests'>
  readonly templates: RequestTemplates
  readonly progress: RequestProgress
  readonly status: RequestStatus
  readonly events: EventRecorder
  readonly clock: Pick<Clock, 'now'>
}

const firstPauseMs = 60_000
const longestPauseMs = 10 * 60_000
const pollMs = 1_000
/** When nothing came of a decision, another one is asked for. */
const askAgainMs = 10_000

/** A request whose room is sought, as it was read. */
interface Sought {
  readonly request: ProvisioningRequest
  readonly class: RequestClass
  readonly signal: AbortSignal
}

export class RequestSearch {
  readonly #deps: Dependencies
  /** By UID, how long the next attempt is waited for; after a restart it begins anew. */
  readonly #pauses = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** The request is sought no longer. */
  forget(request: ProvisioningRequest | undefined): void {
    this.#pauses.delete(request?.metadata.uid ?? '')
  }

  /** @param triedMs when no room was found last; Unix milliseconds. */
  async next(sought: Sought, triedMs: number | undefined): Promise<ReconcileResult> {
    const { clock, state } = this.#deps
    const { request } = sought
    const { uid = '' } = request.metadata
    const ref = refOfRequest(request)
    if (conditionOf(request, 'Accepted')?.status !== 'True')
      return await this.#write(sought, acceptedCondition, { kind: 'after', delayMs: pollMs })
    const { atMs: deadlineMs, problem } = deadlineOf(request)
    if (problem !== undefined) this.#warn(request, 'InvalidParameter', problem)
    const leftMs = deadlineMs - clock.now()
    if (leftMs <= 0) return await this.#fail(sought, expiredCondition)
    const pauseMs =
      triedMs === undefined ? 0 : triedMs + (this.#pauses.get(uid) ?? firstPauseMs) - clock.now()
    if (pauseMs > 0) {
      state.requests.drop(ref, uid)
      return { kind: 'after', delayMs: Math.min(pauseMs, leftMs) }
    }
    const served = await this.#served(sought)
    if ('kind' in served) return served
    state.requests.put(served)
    return await this.#follow(sought, this.#deps.progress.of(served), Math.min(leftMs, askAgainMs))
  }

  /** What decisions are to be about; a result where there is nothing yet. */
  async #served(sought: Sought): Promise<ServedRequest | ReconcileResult> {
    const { clock, progress, state, templates } = this.#deps
    const { request, class: of } = sought
    const ref = refOfRequest(request)
    const found = templates.of(request)
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
    if (state.requests.served(ref.id) === undefined) progress.resume(served)
    return served
  }

  async #follow(sought: Sought, progress: Progress, leftMs: number): Promise<ReconcileResult> {
    const { state, status } = this.#deps
    const { request, signal } = sought
    switch (progress.kind) {
      case 'undecided': {
        const { id } = refOfRequest(request)
        if (state.requests.outcomeOf(id) !== undefined) state.requests.asked.notify(id)
        return { kind: 'after', delayMs: leftMs }
      }
      case 'underWay': {
        const { launched, nodes, ready } = progress
        const message = `It takes ${nodes} node(s): ${launched} launched, ${ready} ready`
        const condition: NewCondition = {
          type: 'Provisioned',
          status: 'False',
          reason: beingProvisioned,
          message,
        }
        const isWritten = await status.update(request, condition, signal)
        return { kind: 'after', delayMs: isWritten ? leftMs : pollMs }
      }
      case 'found': {
        const condition = foundCondition(progress.isLaunched)
        const isWritten = await status.write(request, { condition, details: progress.details }, signal)
        return { kind: 'after', delayMs: isWritten ? leftMs : pollMs }
      }
      case 'notFound':
        return await this.#notFound(sought, progress.message)
    }
  }

  async #notFound(sought: Sought, message: string): Promise<ReconcileResult> {
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

  async #fail(sought: Sought, condition: NewCondition): Promise<ReconcileResult> {
    const { request } = sought
    const result = await this.#write(sought, condition, done)
    if (result.kind !== 'done') return result
    this.#warn(request, condition.reason ?? '', condition.message ?? '')
    this.#deps.state.requests.drop(refOfRequest(request), request.metadata.uid)
    return done
  }

  async #write(
    { request, signal }: Sought,
    condition: NewCondition,
    result: ReconcileResult,
  ): Promise<ReconcileResult> {
    const isWritten = await this.#deps.status.write(request, { condition }, signal)
    return isWritten ? result : { kind: 'after', delayMs: pollMs }
  }

  #warn(request: ProvisioningRequest, reason: string, message: string): void {
    const { uid = '' } = request.metadata
    this.#deps.events.record({ object: request, type: 'Warning', reason, message, dedupe: [uid, message] })
  }
}

const parameter = 'ValidUntilSeconds'

/** `problem`: what is wrong with the parameter that says so, which then counts as missing. */
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
