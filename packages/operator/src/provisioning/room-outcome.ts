/** What a decision says about placeholder pods, those of CapacityBuffers and ProvisioningRequests. */
import type { Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'
import type { GatheredInput } from './input/scheduling-input.ts'

/** What one pass decided about placeholder pods. */
export interface RoomOutcome {
  /** All placeholder pods of the pass. */
  readonly pods: readonly Pod[]
  /** Undefined if nothing was decided. */
  readonly decided?: {
    readonly result: Pick<SchedulingResult, 'claims' | 'deferred' | 'podGroups' | 'room'>
    readonly stateNodes: GatheredInput['stateNodes']
    /** Placeholder pods that were excluded before the decision. */
    readonly refused: readonly Pod[]
  }
}

/** Reports each pass to those who keep room. */
export interface RoomReport {
  report(outcome: RoomOutcome, signal: AbortSignal): Promise<void>
}

/**
 * By UID of a placeholder pod, the provider ID of the existing instance that has room for it.
 * @param isOwn which pods are asked about.
 */
export function roomHosts(
  { result, stateNodes }: NonNullable<RoomOutcome['decided']>,
  isOwn: (pod: Pod) => boolean,
): ReadonlyMap<string, string> {
  return new Map(
    (result.room?.placements ?? []).flatMap(({ pod, node }) => {
      const host = isOwn(pod) ? stateNodes.get(node)?.providerID : undefined
      return host === undefined ? [] : [[pod.metadata.uid ?? '', host] as const]
    }),
  )
}
