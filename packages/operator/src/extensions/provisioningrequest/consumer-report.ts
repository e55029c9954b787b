/** Tells pods that are made for the room of a ProvisioningRequest what becomes of them (gangs.md 2.3, 7.6). */
import type { EventRecorder } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'pods' | 'requests'>
  readonly events: EventRecorder
}

/** Once for nearly every pod. */
const dedupeTtlMs = 24 * 60 * 60_000

export class ConsumerReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param key `namespace/name` of a request. */
  tell(key: string): void {
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
        dedupeTtlMs,
      })
    }
  }
}
