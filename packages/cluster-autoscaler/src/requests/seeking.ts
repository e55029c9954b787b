/** Looks for the capacity of ProvisioningRequests (gangs.md 3, 4). */
import {
  acceptedCondition,
  conditionOf,
  failedCondition,
  foundCondition,
  isTriedOnce,
  type NewCondition,
  notFoundCondition,
  type Pod,
  type ProvisioningRequest,
  type RequestClass,
} from '@tenon/api'
import { type Clock, inSlices, messageOf, type Slicing } from '@tenon/runtime'
import type { LoopView } from '../model.ts'
import type { RequestOptions } from '../options/options.ts'
import type { ScaleUp, ScaleUpQuestion } from '../scale-up/scale-up.ts'
import type { KnownRequests } from './known-requests.ts'
import { placeAll, placeWhole, whyNowhere } from './placing.ts'
import type { RequestRoom } from './request-room.ts'

interface Dependencies {
  readonly options: Pick<RequestOptions, 'maxBatchSize' | 'batchTimeboxMs'>
  readonly known: KnownRequests
  readonly scaleUp: Pick<ScaleUp, 'whole'>
  readonly slicing: Slicing & { readonly clock: Clock }
}

/** A request for which this loop looks for capacity. */
export interface SoughtRequest {
  readonly request: ProvisioningRequest
  readonly class: RequestClass
  readonly room: RequestRoom
}

/** The result for a request. */
export interface SeekingResult {
  readonly request: ProvisioningRequest
  /** Undefined if there is no result yet, or it could not be written. */
  readonly answer: NewCondition | undefined
  /** Groups that were scaled up for it, as text for events. */
  readonly groups?: string
}

export class RequestSeeking {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** One request. Accepted is written first, so that its user sees that it is being processed. */
  async one(
    sought: SoughtRequest,
    { view, safetyOf }: Omit<ScaleUpQuestion, 'pods'>,
    signal: AbortSignal,
  ): Promise<SeekingResult> {
    const { known } = this.#deps
    const { room } = sought
    if (room.kind === 'failed') return await this.#failed(sought, room.message, signal)
    const request = await this.#accepted(sought.request, signal)
    if (request === undefined) return { request: sought.request, answer: undefined }
    if (sought.class === 'check') {
      const answer = await this.#check(request, room.sets, view)
      return await this.#answered(request, answer, signal)
    }
    const mark = view.snapshot.mark()
    const { answer, groups } = await this.#atomic(request, room.sets, { view, safetyOf }, signal)
    if (answer?.status !== 'True') view.snapshot.revert(mark)
    if (answer === undefined) return { request, answer }
    const written = await known.write(request, [answer], signal)
    return { request: written ?? request, answer, ...(groups !== undefined && { groups }) }
  }

  /**
   * Several check-capacity requests in turn; each sees what those before it reserved. Those for which the time is not
   * enough wait for the next loop.
   */
  async batch(
    all: readonly SoughtRequest[],
    view: LoopView,
    signal: AbortSignal,
  ): Promise<readonly SeekingResult[]> {
    const { known, options, slicing } = this.#deps
    const start = slicing.clock.monotonic()
    const answers: (readonly [ProvisioningRequest, readonly NewCondition[]])[] = []
    for (const { request, room } of all.slice(0, options.maxBatchSize)) {
      if (room.kind === 'failed') answers.push([request, [failedToCreate(room.message)]])
      else answers.push([request, [acceptedCondition, await this.#check(request, room.sets, view)]])
      if (slicing.clock.monotonic() - start >= options.batchTimeboxMs) break
    }
    return await Promise.all(
      answers.map(async ([request, conditions]) => {
        const written = await known.write(request, conditions, signal)
        return { request: written ?? request, answer: written && conditions.at(-1) }
      }),
    )
  }

  async #failed({ request }: SoughtRequest, message: string, signal: AbortSignal): Promise<SeekingResult> {
    return await this.#answered(request, failedToCreate(message), signal)
  }

  async #answered(
    request: ProvisioningRequest,
    answer: NewCondition,
    signal: AbortSignal,
  ): Promise<SeekingResult> {
    const written = await this.#deps.known.write(request, [answer], signal)
    return { request: written ?? request, answer: written && answer }
  }

  /** Sets Accepted for this attempt; undefined if the write failed. */
  async #accepted(
    request: ProvisioningRequest,
    signal: AbortSignal,
  ): Promise<ProvisioningRequest | undefined> {
    const atMs = (type: string) => Date.parse(conditionOf(request, type)?.lastTransitionTime ?? '')
    const isAccepted = conditionOf(request, 'Accepted')?.status === 'True'
    const triedMs = atMs('Provisioned')
    if (isAccepted && (Number.isNaN(triedMs) || atMs('Accepted') > triedMs)) return request
    return await this.#deps.known.write(request, [acceptedCondition], signal)
  }

  async #check(
    request: ProvisioningRequest,
    sets: readonly (readonly Pod[])[],
    { snapshot }: LoopView,
  ): Promise<NewCondition> {
    const { slicing } = this.#deps
    const homeless = await inSlices(placeWhole(sets, snapshot), slicing)
    if (homeless === undefined) return foundCondition(false)
    const why = await inSlices(whyNowhere(homeless, snapshot), slicing)
    return notFoundCondition(`${textOf(homeless, request, sets)}: ${why}`, isTriedOnce(request))
  }

  async #atomic(
    request: ProvisioningRequest,
    sets: readonly (readonly Pod[])[],
    { view, safetyOf }: Omit<ScaleUpQuestion, 'pods'>,
    signal: AbortSignal,
  ): Promise<{ readonly answer: NewCondition | undefined; readonly groups?: string }> {
    const { scaleUp, slicing } = this.#deps
    try {
      const left = await inSlices(placeAll(sets, view.snapshot, new Map()), slicing)
      if (left.length === 0) return { answer: foundCondition(false) }
      const result = await scaleUp.whole({ view, pods: left, safetyOf }, signal)
      switch (result.kind) {
        case 'successful':
          return {
            answer: foundCondition(true, 'Nodes are asked for that have room for all of its pods'),
            groups: result.groups,
          }
        case 'waiting':
          return { answer: undefined }
        case 'refused': {
          const who = result.pod === undefined ? '' : `${textOf(result.pod, request, sets)}: `
          return { answer: notFoundCondition(who + result.message, false) }
        }
      }
    } catch (error) {
      signal.throwIfAborted()
      const message = `It could not be found out whether there is room; tried again later: ${messageOf(error)}`
      return { answer: { type: 'Provisioned', status: 'False', reason: 'FailedToCheckCapacity', message } }
    }
  }
}

function failedToCreate(message: string): NewCondition {
  return failedCondition('FailedToCreatePods', message)
}

/** Identifies one of the pods for users. */
function textOf(pod: Pod, { spec }: ProvisioningRequest, sets: readonly (readonly Pod[])[]): string {
  const set = sets.findIndex((pods) => pods.includes(pod))
  const at = sets[set]?.indexOf(pod) ?? 0
  const template = spec.podSets[set]?.podTemplateRef.name ?? ''
  return `pod ${at + 1} of ${sets[set]?.length ?? 0} of PodTemplate ${template}`
}
