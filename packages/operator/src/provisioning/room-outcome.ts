/** What becomes of pods that only stand for room: those of CapacityBuffers and of ProvisioningRequests. */
import type { Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'
import type { GatheredInput } from './input/scheduling-input.ts'

/** What became in one pass of pods that only stand for room. */
export interface RoomOutcome {
  /** All of them that the pass was about. */
  readonly pods: readonly Pod[]
  /** Absent where nothing was decided. */
  readonly decided?: {
    readonly result: Pick<SchedulingResult, 'claims' | 'deferred' | 'podGroups' | 'room'>
    readonly stateNodes: GatheredInput['stateNodes']
    /** Pods that were not decided about. */
    readonly refused: readonly Pod[]
  }
}

/** Who is told of each pass. */
export interface RoomReport {
  tell(outcome: RoomOutcome, signal: AbortSignal): Promise<void>
}

/**
 * By UID of a pod that stands for room, the provider ID of the instance that is there with room for it.
 * @param isOwn whether a pod is asked about.
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
