/** Instances that a decision has just bought, or filled, for pods. */
import type { Clock } from '@tenon/runtime'

/** Pods that have just started are left where they are for so long, beyond consolidateAfter. */
const settleMs = 15 * 60_000
/** Pods that come without end do not keep an instance for longer. */
const longestMs = 60 * 60_000
/** What an instance was filled with is remembered for so long. */
const memoryMs = 24 * 60 * 60_000

/**
 * A decision does not know in which order its nodes join and where the scheduler puts pods on them, so a search a
 * minute later may know a cheaper set of nodes. Moving pods that have just started is a worse answer than to let
 * them run for a while, unless pods have left the instance since: then there is something new to decide.
 */
export class RecentlyFilledNodes {
  readonly #clock: Pick<Clock, 'now'>
  /** When a decision last put pods on the instance, by name of its claim. */
  readonly #filled = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** A decision was made that pods run on the instance of this claim. */
  fill(claim: string): void {
    const now = this.#clock.now()
    for (const [name, atMs] of this.#filled) if (now - atMs >= memoryMs) this.#filled.delete(name)
    this.#filled.set(claim, now)
  }

  /** A pod has left the instance. */
  loosen(claim: string): void {
    this.#filled.delete(claim)
  }

  /** Whether a decision has put pods on the instance of this claim, and none has left since. */
  has(claim: string): boolean {
    return this.#filled.has(claim)
  }

  /**
   * For how many milliseconds its pods are still left alone; 0 when they may be moved.
   * @param sinceMs when a pod last came to it.
   * @param afterMs how long its NodePool leaves nodes alone anyway.
   */
  leftMs(claim: string, sinceMs: number, afterMs: number): number {
    const filledMs = this.#filled.get(claim)
    if (filledMs === undefined) return 0
    const untilMs = Math.min(sinceMs + settleMs, filledMs + longestMs) + afterMs
    return Math.max(0, untilMs - this.#clock.now())
  }
}
