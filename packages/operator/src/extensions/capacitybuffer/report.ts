/**
 * Writes what a scheduling pass found for CapacityBuffers (buffers-and-dra.md 2.6, 2.7). Each condition stands for itself;
 * there is no Ready.
 */
import {
  autoscalingKinds,
  type CapacityBuffer,
  isConditionTrue,
  type NewCondition,
  type Pod,
  withCondition,
} from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { type Clock, type Logger } from '@tenon/runtime'
import type { BufferCaches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { bufferOf, isBufferPod } from '../../state/pods/buffer-pods.ts'
import { roomHosts, type RoomOutcome } from '../../provisioning/room-outcome.ts'
import { inParallel } from '../../in-parallel.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly buffers: BufferCaches
  readonly state: Pick<ClusterState, 'buffers' | 'consolidation'>
  readonly clock: Clock
  readonly logger: Logger
}

const parallelPatches = 10

export class BufferReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Failed writes are only logged: the next pass writes again. */
  async report({ decided, pods: all }: RoomOutcome, signal: AbortSignal): Promise<void> {
    const { buffers, clock, state } = this.#deps
    const pods = all.filter(isBufferPod)
    const tallies = decided === undefined ? new Map<string, BufferTally>() : talliesOf(decided)
    const hosts = decided === undefined ? new Map<string, string>() : roomHosts(decided, isBufferPod)
    // Released room may free nodes, and kept room may block moves.
    if (state.buffers.decided(pods, hosts, clock.monotonic())) state.consolidation.bump()
    await inParallel(buffers.capacityBuffers.list(), parallelPatches, async (buffer) => {
      await this.#write(buffer, tallies.get(keyOf(buffer.metadata)), signal)
    })
  }

  async #write(buffer: CapacityBuffer, tally: BufferTally | undefined, signal: AbortSignal): Promise<void> {
    const { client, clock, logger } = this.#deps
    const next = provisioningCondition(buffer, tally)
    const stored = buffer.status?.conditions ?? []
    const conditions = next === undefined ? stored : withCondition(buffer, next, clock.now())
    if (conditions === stored) return
    const { name, namespace = '', resourceVersion = '' } = buffer.metadata
    try {
      await client.patch(
        autoscalingKinds.capacityBuffer,
        { namespace, name },
        { status: { conditions } },
        { subresource: 'status', resourceVersion, isAnswerUnread: true, signal },
      )
    } catch (error) {
      if (signal.aborted) return
      logger.info('could not write what a scheduling pass found for a capacity buffer', {
        CapacityBuffer: { name, namespace },
        error,
      })
    }
  }
}

function talliesOf({
  refused,
  result: { claims, deferred, room },
}: NonNullable<RoomOutcome['decided']>): ReadonlyMap<string, BufferTally> {
  const tallies = new Map<string, { existing: number; launched: number; failed: number }>()
  const count = (what: keyof BufferTally) => (pod: Pod) => {
    if (!isBufferPod(pod)) return
    const key = bufferOf(pod)
    const tally = tallies.get(key) ?? { existing: 0, launched: 0, failed: 0 }
    tallies.set(key, tally)
    tally[what]++
  }
  for (const { pod } of room?.placements ?? []) count('existing')(pod)
  for (const { pod } of room?.failures ?? []) count('failed')(pod)
  for (const pod of refused) count('failed')(pod)
  for (const { roomPods = [] } of [...claims, ...deferred.map(({ claim }) => claim)])
    for (const pod of roomPods) count('launched')(pod)
  return tallies
}

export const readyType = 'ReadyForProvisioning'
const provisioningType = 'Provisioning'

/** Placeholder pods of one buffer, by what the pass found for them. */
interface BufferTally {
  /** With room on nodes that exist or are on their way. */
  readonly existing: number
  /** For which nodes are launched. */
  readonly launched: number
  readonly failed: number
}

/** Condition Provisioning after a pass; undefined if it stays. */
export function provisioningCondition(
  buffer: CapacityBuffer,
  tally: BufferTally | undefined,
): NewCondition | undefined {
  const type = provisioningType
  const { replicas: desired = 0 } = buffer.status ?? {}
  if (!isConditionTrue(buffer, readyType))
    return {
      type,
      status: 'False',
      reason: 'NotReadyForProvisioning',
      message: 'The buffer is not ready for provisioning',
    }
  if (desired <= 0)
    return { type, status: 'False', reason: 'BufferEmpty', message: 'The buffer has no replicas' }
  if (tally === undefined) return undefined
  const { existing, failed, launched } = tally
  if (launched + failed > 0)
    return {
      type,
      status: 'False',
      reason: 'RequiresNewCapacity',
      message: `New nodes are needed for ${launched} of ${desired} pods, and ${failed} cannot be placed`,
    }
  if (existing !== desired) return undefined
  return {
    type,
    status: 'True',
    reason: 'FitsExistingCapacity',
    message: `There is room for all ${existing} pods on existing nodes`,
  }
}
