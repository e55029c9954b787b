/** What a scheduling pass found for CapacityBuffers: conditions, and the room that is kept (buffers-and-dra.md 2.6, 2.7). */
import { autoscalingKinds, type CapacityBuffer, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { BufferCaches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { bufferOf, isBufferPod } from '../../state/pods/buffer-pods.ts'
import { type RoomOutcome, roomHosts } from '../../provisioning/room-outcome.ts'
import { inParallel } from '../../in-parallel.ts'
import { type BufferTally, provisioningCondition, withCondition } from './condition.ts'

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

  /** Failures to write are told in the log: the next pass writes what is true then. */
  async tell({ decided, pods: all }: RoomOutcome, signal: AbortSignal): Promise<void> {
    const { buffers, clock, state } = this.#deps
    const pods = all.filter(isBufferPod)
    const tallies = decided === undefined ? new Map<string, BufferTally>() : talliesOf(decided)
    const hosts = decided === undefined ? new Map<string, string>() : roomHosts(decided, isBufferPod)
    // Nodes whose room is given up may go, and room that is kept may stand in the way of a move.
    if (state.buffers.decided(pods, hosts, clock.monotonic())) state.consolidation.bump()
    await inParallel(buffers.capacityBuffers.list(), parallelPatches, async (buffer) => {
      await this.#write(buffer, tallies.get(keyOf(buffer)), signal)
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

function keyOf({ metadata: { name, namespace = '' } }: CapacityBuffer): string {
  return `${namespace}/${name}`
}
