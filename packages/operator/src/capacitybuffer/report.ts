/** What a scheduling pass found for CapacityBuffers: conditions, and the room that is kept (buffers-and-dra.md 2.6, 2.7). */
import { autoscalingKinds, type CapacityBuffer, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { SchedulingResult } from '@tenon/engine'
import type { Clock, Logger } from '@tenon/runtime'
import type { BufferCaches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import { bufferOf } from '../cluster/pods/buffer-pods.ts'
import type { GatheredInput } from '../provisioning/input/scheduling-input.ts'
import { inParallel } from '../provisioning/claims/in-parallel.ts'
import { type BufferTally, provisioningCondition, withCondition } from './condition.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly buffers: BufferCaches
  readonly state: Pick<ClusterState, 'buffers' | 'consolidation'>
  readonly clock: Clock
  readonly logger: Logger
}

/** What became of the pods of buffers in one pass. */
export interface BufferOutcome {
  /** All pods of buffers that the pass was about. */
  readonly pods: readonly Pod[]
  /** Absent where nothing was decided. */
  readonly decided?: {
    readonly result: Pick<SchedulingResult, 'buffers' | 'claims' | 'deferred'>
    readonly stateNodes: GatheredInput['stateNodes']
    /** Pods that were not decided about. */
    readonly refused: readonly Pod[]
  }
}

const parallelPatches = 10

export class BufferReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Failures to write are told in the log: the next pass writes what is true then. */
  async tell({ decided, pods }: BufferOutcome, signal: AbortSignal): Promise<void> {
    const { buffers, clock, state } = this.#deps
    const tallies = decided === undefined ? new Map<string, BufferTally>() : talliesOf(decided)
    const hosts = decided === undefined ? new Map<string, string>() : hostsOf(decided)
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
  result: { buffers, claims, deferred },
}: NonNullable<BufferOutcome['decided']>): ReadonlyMap<string, BufferTally> {
  const tallies = new Map<string, { existing: number; launched: number; failed: number }>()
  const count = (what: keyof BufferTally) => (pod: Pod) => {
    const key = bufferOf(pod)
    const tally = tallies.get(key) ?? { existing: 0, launched: 0, failed: 0 }
    tallies.set(key, tally)
    tally[what]++
  }
  for (const { pod } of buffers?.placements ?? []) count('existing')(pod)
  for (const { pod } of buffers?.failures ?? []) count('failed')(pod)
  for (const pod of refused) count('failed')(pod)
  for (const { bufferPods = [] } of [...claims, ...deferred.map(({ claim }) => claim)])
    for (const pod of bufferPods) count('launched')(pod)
  return tallies
}

function hostsOf({ result, stateNodes }: NonNullable<BufferOutcome['decided']>): ReadonlyMap<string, string> {
  return new Map(
    (result.buffers?.placements ?? []).flatMap(({ pod, node }) => {
      const host = stateNodes.get(node)?.providerID
      return host === undefined ? [] : [[pod.metadata.uid ?? '', host] as const]
    }),
  )
}

function keyOf({ metadata: { name, namespace = '' } }: CapacityBuffer): string {
  return `${namespace}/${name}`
}
