/** What a scheduling pass found for ProvisioningRequests (gangs.md 7.6). */
import { consumedBy, isRequestPod, type Pod } from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import type { EventRecorder } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { KeptPlans } from '../../placement/kept-plans.ts'
import { type RoomOutcome, roomHosts } from '../../provisioning/room-outcome.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'consolidation' | 'requests'>
  readonly keptPlans: KeptPlans
  readonly events: EventRecorder
}

export class RequestReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  tell({ decided, pods: all }: RoomOutcome): Promise<void> {
    const { keptPlans, state } = this.#deps
    const pods = all.filter(isRequestPod)
    const { placements = [], failures = [], undecided = [] } = decided?.result.room ?? {}
    if (decided !== undefined)
      keptPlans.keepPlacements(
        placements.filter(({ pod }) => isRequestPod(pod)),
        decided.stateNodes,
      )
    const hosts = decided === undefined ? new Map<string, string>() : roomHosts(decided, isRequestPod)
    // Nodes whose room is given up may go, and room that is kept may stand in the way of a move.
    if (state.requests.decided(pods, hosts, decided?.result.podGroups ?? [])) state.consolidation.bump()
    const lost = failures.filter(({ pod }) => isRequestPod(pod))
    const byRequest = Map.groupBy(lost, ({ pod }) => consumedBy(pod) ?? '')
    for (const [key, [first, ...others]] of byRequest)
      if (first !== undefined) this.#tellLost(key, renderPodReason(first.reason), 1 + others.length)
    const left = undecided.filter(isRequestPod)
    if (left.length > 0) state.requests.asked.notify(keyOfPod(left))
    return Promise.resolve()
  }

  /** Of one that is sought its group is told. */
  #tellLost(key: string, reason: string, pods: number): void {
    const { events, state } = this.#deps
    const served = state.requests.all().find(({ ref }) => `${ref.namespace}/${ref.name}` === key)
    if (served === undefined || !served.isBooked) return
    events.record({
      object: served.request,
      type: 'Warning',
      reason: 'BookedCapacityLost',
      message: `There is no room any more for ${pods} of its pods, and none can be had: ${reason}`,
      dedupe: [served.request.metadata.uid ?? ''],
      dedupeTtlMs: 5 * 60_000,
    })
  }
}

function keyOfPod([pod]: readonly Pod[]): string {
  return pod?.metadata.uid ?? ''
}
