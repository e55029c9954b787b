/** Workloads that consolidation has moved, and those it had better leave alone (user-asks.md ASK-2, "calm"). */
import type { Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'

/** A machine launched so long after a move for a pod of the same workload was launched because of the move. */
const settleMs = 5 * 60_000
const restMs = 15 * 60_000
const longestRestMs = 16 * restMs
/** What happened so long ago does not count any more. */
const memoryMs = 2 * longestRestMs

interface Rest {
  readonly count: number
  readonly untilMs: number
}

/**
 * The scheduler need not put pods where consolidation found room for them. When a machine is launched for pods
 * of a workload that was moved just before, the move has saved nothing, and would be made again as soon as that
 * machine is there: such workloads rest, for longer each time. Keys are the UIDs of the pods' controllers.
 */
export class MovedPods {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** When the workload was moved last. */
  readonly #moved = new Map<string, number>()
  readonly #rests = new Map<string, Rest>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Consolidation takes the node from under these pods. */
  move(pods: readonly Pod[]): void {
    const now = this.#clock.monotonic()
    for (const [key, atMs] of this.#moved) if (now - atMs >= settleMs) this.#moved.delete(key)
    for (const key of workloadsOf(pods)) this.#moved.set(key, now)
  }

  /**
   * A machine is launched for these pods.
   * @returns how many workloads rest because of that from now on.
   */
  launchFor(pods: readonly Pod[]): number {
    const now = this.#clock.monotonic()
    for (const [key, { untilMs }] of this.#rests) if (now - untilMs >= memoryMs) this.#rests.delete(key)
    let resting = 0
    for (const key of workloadsOf(pods)) {
      const atMs = this.#moved.get(key)
      if (atMs === undefined || now - atMs >= settleMs) continue
      // One move is undone once, however many machines that takes.
      this.#moved.delete(key)
      const count = (this.#rests.get(key)?.count ?? 0) + 1
      this.#rests.set(key, { count, untilMs: now + Math.min(longestRestMs, restMs * 2 ** (count - 1)) })
      resting++
    }
    return resting
  }

  /** The first of these pods whose workload rests, with how many milliseconds it still does. */
  resting(pods: readonly Pod[]): { readonly pod: Pod; readonly forMs: number } | undefined {
    if (this.#rests.size === 0) return undefined
    const now = this.#clock.monotonic()
    for (const pod of pods) {
      const forMs = (this.#rests.get(workloadOf(pod) ?? '')?.untilMs ?? 0) - now
      if (forMs > 0) return { pod, forMs }
    }
    return undefined
  }
}

function workloadOf({ metadata }: Pod): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid
}

function workloadsOf(pods: readonly Pod[]): ReadonlySet<string> {
  return new Set(pods.flatMap((pod) => workloadOf(pod) ?? []))
}
