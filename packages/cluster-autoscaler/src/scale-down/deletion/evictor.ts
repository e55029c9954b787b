/** Evicts the pods of a node and waits until they are gone (cluster-autoscaler.md 6.6). */
import { type Clock, messageOf } from '@tenon/runtime'
import type { ClusterWriter, Reporting } from '../../model.ts'
import { nameOf } from '../../pods/pod-traits.ts'
import type { ClusterReader } from './cluster-reader.ts'
import type { Eviction, EvictionGroup, EvictionPlan } from './eviction-plan.ts'

const retryMs = 10_000
const pollMs = 5_000

export interface EvictorDependencies {
  readonly writer: Pick<ClusterWriter, 'evict'>
  readonly reader: Pick<ClusterReader, 'podsOf'>
  readonly reporting: Reporting
  readonly clock: Clock
  /** `--max-pod-eviction-time`. */
  readonly maxPodEvictionMs: number
}

export class Evictor {
  readonly #deps: EvictorDependencies

  constructor(deps: EvictorDependencies) {
    this.#deps = deps
  }

  /** @returns why the node is not drained; undefined if it is. */
  async drain(nodeName: string, plan: EvictionPlan, signal: AbortSignal): Promise<string | undefined> {
    // Calls for DaemonSet pods are awaited too, but their result is ignored (trap 32).
    const bestEffort = Promise.all(plan.bestEffort.map((eviction) => this.#call(eviction, signal)))
    // The groups report an abort; this avoids an unhandled rejection.
    bestEffort.catch(() => undefined)
    for (const group of plan.groups) {
      const failure =
        (await this.#evictAll(group, signal)) ?? (await this.#awaitGone(nodeName, group, signal))
      if (failure !== undefined) return failure
    }
    await bestEffort
    return undefined
  }

  async #evictAll({ evictions }: EvictionGroup, signal: AbortSignal): Promise<string | undefined> {
    const { events, metrics } = this.#deps.reporting
    const failures = await Promise.all(
      evictions.map(async (eviction) => {
        const { pod } = eviction
        const failure = await this.#call(eviction, signal)
        metrics.add('evicted_pods_total', 1, {
          eviction_result: failure === undefined ? 'succeeded' : 'failed',
        })
        if (failure === undefined) return undefined
        events.object(pod, 'Warning', 'ScaleDownFailed', `failed to delete pod for ScaleDown: ${failure}`)
        return `could not evict pod ${nameOf(pod)}: ${failure}`
      }),
    )
    return failures.find((failure) => failure !== undefined)
  }

  /**
   * At least one attempt, then one every 10 s until the time limit.
   * @returns the last failure.
   */
  async #call({ pod, graceSeconds }: Eviction, signal: AbortSignal): Promise<string | undefined> {
    const { writer, clock, reporting, maxPodEvictionMs } = this.#deps
    const endMs = clock.monotonic() + maxPodEvictionMs
    reporting.events.object(pod, 'Normal', 'ScaleDown', 'deleting pod for node scale down')
    for (;;) {
      try {
        await writer.evict(pod, graceSeconds, signal)
        return undefined
      } catch (error) {
        if (signal.aborted) throw error
        reporting.logger.debug('a pod could not be evicted', { pod: nameOf(pod), error })
        if (clock.monotonic() + retryMs > endMs) return messageOf(error)
      }
      await clock.sleep(retryMs, signal)
    }
  }

  /** A pod of the same name counts as gone on another node, but not on this one, whatever its UID. */
  async #awaitGone(nodeName: string, group: EvictionGroup, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.#deps
    const endMs = clock.monotonic() + group.goneWithinMs
    const evicted = new Set(group.evictions.map(({ pod }) => nameOf(pod)))
    for (;;) {
      const left = await this.#namesOn(nodeName, signal)
      const remaining = left === undefined ? undefined : [...evicted].find((name) => left.has(name))
      if (left !== undefined && remaining === undefined) return undefined
      if (clock.monotonic() >= endMs) {
        const what =
          remaining === undefined ? 'the pods of the node cannot be read' : `pod ${remaining} is still there`
        return `${what} ${group.goneWithinMs / 1000} s after the eviction`
      }
      await clock.sleep(Math.min(pollMs, endMs - clock.monotonic()), signal)
    }
  }

  /** Undefined if it cannot be read. */
  async #namesOn(nodeName: string, signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
    try {
      return new Set((await this.#deps.reader.podsOf(nodeName, signal)).map(nameOf))
    } catch (error) {
      if (signal.aborted) throw error
      this.#deps.reporting.logger.debug('the pods of a node that is drained could not be read', {
        node: nodeName,
        error,
      })
      return undefined
    }
  }
}
