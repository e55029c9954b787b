/** NodePools whose last replacement did not become a node (disruption.md 14). */
import type { Clock } from '@tenon/runtime'
import type { Unavailability } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import { FailureBackoff } from '../../state/failure-backoff.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

/** Notified how replacements end; the automatic brake is one. */
export interface ReplacementObserver {
  /** Replacements of this NodePool did not become nodes. */
  replacementFailed(pool: string): void
  replacementSucceeded(pool: string): void
}

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'launchFailures'>
  /** Undefined if disruption does not pause by itself. */
  readonly autoBrake?: ReplacementObserver
  readonly events: EventRecorder
  readonly clock: Clock
}

const minute = 60_000
const backoff = { freeFailures: 0, baseMs: minute, capMs: 60 * minute, memoryMs: 120 * minute } as const

/**
 * A cause that fails one replacement fails the next one, too: a used-up quota, refused creates, instances that never join.
 * So the NodePool replaces nothing for a while, longer each time, and then tries one node.
 */
export class Replacements {
  readonly #deps: Dependencies
  readonly #failures: FailureBackoff
  /** End of the pause by NodePool, in Unix milliseconds. */
  readonly #until = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#failures = new FailureBackoff(deps.clock, backoff)
  }

  /** Notes that replacements of these NodePools did not become nodes. */
  failed(pools: Iterable<string>): void {
    // Replacements that fail together are one failure.
    for (const pool of new Set(pools)) {
      if (this.leftMs(pool) > 0) continue
      this.#failures.note([pool])
      this.#until.set(pool, this.#deps.clock.now() + this.leftMs(pool))
      this.#report(pool)
      this.#deps.autoBrake?.replacementFailed(pool)
    }
  }

  succeeded(pool: string): void {
    this.#failures.forget([pool])
    this.#deps.autoBrake?.replacementSucceeded(pool)
    this.#until.delete(pool)
  }

  /**
   * Why no replacement of the NodePool is launched now: the last one failed lately, or the one that tries again is still on
   * its way.
   * @param isAwaited whether a replacement of the NodePool is on its way.
   */
  whyNone(pool: string, isAwaited: () => boolean): Unavailability | undefined {
    const untilMs = this.leftMs(pool) > 0 ? this.#until.get(pool) : undefined
    const failure = this.#deps.state.launchFailures.get(pool)
    const because = `the last replacement did not become a node${failure === undefined ? '' : `: ${failure}`}`
    if (untilMs !== undefined) return { because, untilMs }
    return this.#failures.hasFailed(pool) && isAwaited() ? { because } : undefined
  }

  /** Milliseconds until the NodePool may replace nodes again. */
  leftMs(pool: string): number {
    return this.#failures.leftMs(pool)
  }

  #report(pool: string): void {
    const object = this.#deps.caches.nodePools.get({ name: pool })
    if (object === undefined) return
    const failure = this.#deps.state.launchFailures.get(pool)
    const why = failure === undefined ? '' : `: ${failure}`
    const leftMin = Math.ceil(this.leftMs(pool) / minute)
    this.#deps.events.record({
      object,
      type: 'Warning',
      reason: 'ReplacementFailed',
      message: `A replacement NodeClaim did not become a node${why}; the next one is created in ${leftMin} min`,
      dedupe: [object.metadata.uid ?? pool],
    })
  }
}
