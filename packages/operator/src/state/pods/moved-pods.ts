/** Workloads that disruption has moved, with a back-off for moves that saved nothing. */
import { controllerOf, type Pod } from '@tenon/api'
import { type Clock, perObject } from '@tenon/runtime'
import { FailureBackoff } from '../failure-backoff.ts'

/** An instance launched for the workload within this time after a move was needed because of the move. */
const settleMs = 5 * 60_000
const minute = 60_000
const backoff = { freeFailures: 0, baseMs: 15 * minute, capMs: 240 * minute, memoryMs: 480 * minute } as const

/**
 * The scheduler need not bind pods where consolidation found room for them. If an instance is launched for a workload that
 * was just moved, the move has saved nothing, and would be repeated as soon as that instance exists: such workloads back
 * off, longer each time. Keys are UIDs of the pods' controllers.
 */
export class MovedPods {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Last move of the workload, for any reason. */
  readonly #moved = new Map<string, number>()
  /** Last consolidation of the workload, unless that was undone. */
  readonly #consolidated = new Map<string, number>()
  readonly #failures: FailureBackoff

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#failures = new FailureBackoff(clock, backoff)
  }

  /** A command removes the node of these pods. */
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
   * Whether the workload of the pod was just moved: the pod may replace a moved one, or have been removed because of the
   * move.
   */
  isMoved(pod: Pod): boolean {
    const atMs = this.#moved.get(controllerOf(pod)?.uid ?? '')
    return atMs !== undefined && this.#clock.monotonic() - atMs < settleMs
  }

  /**
   * An instance is launched for these pods.
   * @returns number of workloads that back off because of it.
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
   * The first of these pods whose workload backs off, and for how many milliseconds.
   * @param pods must not be changed later.
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

/** The first pod of each workload, by UID of the workload. */
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
