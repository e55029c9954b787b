/** What a scheduling pass found for ProvisioningRequests (gangs.md 7.6). */
import { consumedBy, isRequestPod } from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import type { EventRecorder } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { RequestPods } from '../../state/pods/request-pods.ts'
import type { KeptPlans } from '../../placement/planned-pods.ts'
import { roomHosts, type RoomOutcome } from '../../provisioning/room-outcome.ts'
import type { Clock } from '@tenon/runtime'

export class RequestReport {
  readonly #state: Pick<ClusterState, 'consolidation' | 'requests'>
  readonly #keptPlans: KeptPlans
  readonly #events: EventRecorder

  constructor(
    state: Pick<ClusterState, 'consolidation' | 'requests'>,
    keptPlans: KeptPlans,
    events: EventRecorder,
  ) {
    this.#state = state
    this.#keptPlans = keptPlans
    this.#events = events
  }

  report({ decided, pods: all }: RoomOutcome): Promise<void> {
    const { consolidation, requests } = this.#state
    const pods = all.filter(isRequestPod)
    const { placements = [], failures = [], undecided = [] } = decided?.result.room ?? {}
    if (decided !== undefined)
      this.#keptPlans.keepPlacements(
        placements.filter(({ pod }) => isRequestPod(pod)),
        decided.stateNodes,
      )
    const hosts = decided === undefined ? new Map<string, string>() : roomHosts(decided, isRequestPod)
    // Released room may free nodes, and kept room may block moves.
    if (requests.decided(pods, hosts, decided?.result.podGroups ?? [])) consolidation.bump()
    const lost = failures.filter(({ pod }) => isRequestPod(pod))
    const byRequest = Map.groupBy(lost, ({ pod }) => consumedBy(pod) ?? '')
    for (const [key, [first, ...others]] of byRequest)
      if (first !== undefined) this.#reportLost(key, renderPodReason(first.reason), 1 + others.length)
    const next = undecided.find(isRequestPod)
    if (next !== undefined) requests.asked.notify(next.metadata.uid ?? '')
    return Promise.resolve()
  }

  /** For a request that is still sought, its group gets the event. */
  #reportLost(key: string, reason: string, pods: number): void {
    const served = this.#state.requests.all().find(({ ref }) => `${ref.namespace}/${ref.name}` === key)
    if (served === undefined || !served.isBooked) return
    this.#events.record({
      object: served.request,
      type: 'Warning',
      reason: 'BookedCapacityLost',
      message: `There is no room any more for ${pods} of its pods, and none can be had: ${reason}`,
      dedupe: [served.request.metadata.uid ?? ''],
      dedupeTtlMs: 5 * 60_000,
    })
  }
}

/** Requests that cannot be read delay decisions no longer than this. */
const unknownMs = 60_000
const pollMs = 100

/** Lets decisions wait for the requests of an earlier process, whose room is to be kept. */
export class KnownRequests {
  readonly #requests: Pick<RequestPods, 'isKnown'>
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** Since the first decision, not since the start: a process may be on standby for long. */
  #waitingSinceMs: number | undefined

  constructor(requests: Pick<RequestPods, 'isKnown'>, clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.#requests = requests
    this.#clock = clock
  }

  /** Resolves when all requests are known, or a minute after the first call. */
  async settle(signal: AbortSignal): Promise<void> {
    const sinceMs = (this.#waitingSinceMs ??= this.#clock.monotonic())
    while (!this.#requests.isKnown && this.#clock.monotonic() - sinceMs < unknownMs)
      await this.#clock.sleep(pollMs, signal)
  }
}
