/** Ends expired ProvisioningRequests, and deletes those that ended long ago (gangs.md 2.2). */
import {
  bookingEndedCondition,
  conditionOf,
  expiredCondition,
  failedCondition,
  type NewCondition,
  type ProvisioningRequest,
  requestedPods,
  requestLifeMs,
  requestStageOf,
} from '@tenon/api'
import { keyOfRequest, type KnownRequests } from './known-requests.ts'
import type { RequestRooms } from './request-room.ts'

/** How long capacity is reserved. */
export const bookingMs = 10 * 60_000
/** Maximum requests that end, and that are deleted, in one loop. */
const atOnce = 20

interface Dependencies {
  readonly known: KnownRequests
  readonly rooms: RequestRooms
}

interface Moment {
  readonly nowMs: number
  /** Pods of a request that have or had a node, by `namespace/name` of the request. */
  readonly bound: ReadonlyMap<string, number>
}

export class RequestEndings {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns those that have ended, with the condition. */
  async end(
    requests: readonly ProvisioningRequest[],
    moment: Moment,
    signal: AbortSignal,
  ): Promise<readonly (readonly [ProvisioningRequest, NewCondition])[]> {
    const { known } = this.#deps
    const due = requests
      .flatMap((request) => {
        const condition = this.#endingOf(request, moment)
        return condition === undefined ? [] : [[request, condition] as const]
      })
      .slice(0, atOnce)
    const old = requests.filter((request) => isLongOver(request, moment.nowMs)).slice(0, atOnce)
    const written = await Promise.all(
      due.map(async ([request, condition]) => {
        const changed = await known.write(request, [condition], signal)
        return changed === undefined ? [] : [[changed, condition] as const]
      }),
    )
    await Promise.all(old.map(async (request) => await known.remove(request, signal)))
    return written.flat()
  }

  #endingOf(request: ProvisioningRequest, { nowMs, bound }: Moment): NewCondition | undefined {
    const stage = requestStageOf(request)
    if (stage.kind === 'sought') {
      const createdMs = Date.parse(request.metadata.creationTimestamp ?? '')
      return nowMs >= createdMs + requestLifeMs ? expiredCondition : undefined
    }
    if (stage.kind !== 'booked') return undefined
    if (nowMs >= stage.sinceMs + bookingMs) return bookingEndedCondition(false)
    if ((bound.get(keyOfRequest(request)) ?? 0) >= requestedPods(request)) return bookingEndedCondition(true)
    const room = this.#deps.rooms.of(request)
    return room.kind === 'failed' ? failedCondition('FailedToBookCapacity', room.message) : undefined
  }
}

/** Whether it ended so long ago that it can be deleted. */
function isLongOver(request: ProvisioningRequest, nowMs: number): boolean {
  if (requestStageOf(request).kind !== 'ended') return false
  const failed = conditionOf(request, 'Failed')
  const since = failed?.status === 'True' ? failed : conditionOf(request, 'Provisioned')
  const sinceMs = Date.parse(since?.lastTransitionTime ?? '')
  return nowMs >= sinceMs + requestLifeMs
}
