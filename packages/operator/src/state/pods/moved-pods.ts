/** Workloads that disruption has moved, and those that consolidation had better leave alone. */
import { controllerOf, type Pod } from '@tenon/api'
import { type Clock, perObject } from '@tenon/runtime'
import { FailureBackoff } from '../failure-backoff.ts'

/** An instance launched so long after a move for a pod of the same workload was launched because of the move. */
const settleMs = 5 * 60_000
const minute = 60_000
const backoff = { freeFailures: 0, baseMs: 15 * minute, capMs: 240 * minute, memoryMs: 480 * minute } as const

/**
 * The scheduler need not put pods where consolidation found room for them. When an instance is launched for pods
 * of a workload that was moved just before, the move has saved nothing, and would be made again as soon as that
 * instance is there: such workloads rest, for longer each time. Keys are the UIDs of the pods' controllers.
 */
export class MovedPods {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** When the workload was moved last, for whatever reason. */
  readonly #moved = new Map<string, number>()
  /** When it was moved last to save money, unless that was undone. */
  readonly #consolidated = new Map<string, number>()
  readonly #failures: FailureBackoff

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#failures = new FailureBackoff(clock, backoff)
  }

  /** A command takes the node from under these pods; consolidation does so to save money. */
  move(pods: readonly Pod[], isConsolidated: boolean): void {
    this.#note(this.#moved, pods)
    if (isConsolidated) this.#note(this.#consolidated, pods)
  }

  #note(times: Map<string, number>, pods: readonly Pod[]): void {
    const now = this.#clock.monotonic()
    for (const [key, atMs] of times) if (now - atMs >= settleMs) times.delete(key)
    for (const key of workloadsOf(pods)) times.set(key, now)
  }

  /**
   * Whether the pod is of a workload that was moved just before: it may have come for one that was moved, or have gone
   * because the workload has failed of it.
   */
  isMoved(pod: Pod): boolean {
    const atMs = this.#moved.get(controllerOf(pod)?.uid ?? '')
    return atMs !== undefined && this.#clock.monotonic() - atMs < settleMs
  }

  /**
   * An instance is launched for these pods.
   * @returns how many workloads rest because of that from now on.
   */
  launchFor(pods: readonly Pod[]): number {
    const now = this.#clock.monotonic()
    const undone = [...workloadsOf(pods)].filter((key) => {
      const atMs = this.#consolidated.get(key)
      return atMs !== undefined && now - atMs < settleMs
    })
    // One move is undone once, however many instances that takes.
    for (const key of undone) this.#consolidated.delete(key)
    this.#failures.note(undone)
    return undone.length
  }

  /**
   * The first of these pods whose workload backs off, with for how many milliseconds it still does.
   * @param pods never changed after they were given.
   */
  backingOff(pods: readonly Pod[]): { readonly pod: Pod; readonly forMs: number } | undefined {
    if (!this.#failures.isAnyPausing) return undefined
    for (const [uid, pod] of firstOfWorkloads(pods)) {
      const forMs = this.#failures.leftMs(uid)
      if (forMs > 0) return { pod, forMs }
    }
    return undefined
  }
}

/** By UID of a workload, the first of its pods. */
const firstOfWorkloads = perObject((pods: readonly Pod[]): ReadonlyMap<string, Pod> => {
  const first = new Map<string, Pod>()
  for (const pod of pods) {
    const uid = controllerOf(pod)?.uid ?? ''
    if (!first.has(uid)) first.set(uid, pod)
  }
  return first
})

function workloadsOf(pods: readonly Pod[]): ReadonlySet<string> {
  return new Set(pods.flatMap((pod) => controllerOf(pod)?.uid ?? []))
}
