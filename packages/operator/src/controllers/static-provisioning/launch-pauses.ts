import { labels, type NodeClaim } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { isNowLeaving } from './static-pool.ts'

const firstPauseMs = 1000
const longestPauseMs = 60_000

interface Pause {
  readonly failures: number
  readonly untilMs: number
}

/**
 * Holds NodePools back whose claims go without ever having had a machine: a cloud that has none would
 * otherwise be asked again as fast as claims can be written.
 */
export class LaunchPauses {
  readonly #clock: Clock
  readonly #pauses = new Map<string, Pause>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  note(change: Change<NodeClaim>): void {
    const { metadata, status } = change.object
    const pool = metadata.labels?.[labels.nodePool] ?? ''
    const isLaunched = (status?.providerID ?? '') !== ''
    if (isLaunched) {
      const pause = this.#pauses.get(pool)
      const isNew = change.kind === 'updated' && (change.old.status?.providerID ?? '') === ''
      if (isNew && pause !== undefined) this.#pauses.set(pool, { ...pause, failures: 0 })
      return
    }
    // Claims that fail together are one failure.
    if (!isNowLeaving(change) || this.leftMs(pool) > 0) return
    const { failures = 0 } = this.#pauses.get(pool) ?? {}
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** failures)
    this.#pauses.set(pool, { failures: failures + 1, untilMs: this.#clock.monotonic() + pauseMs })
  }

  /** How long nothing should be launched for the pool. */
  leftMs(pool: string): number {
    const { untilMs = 0 } = this.#pauses.get(pool) ?? {}
    return Math.max(0, untilMs - this.#clock.monotonic())
  }
}
