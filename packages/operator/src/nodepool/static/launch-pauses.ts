import { labels, type NodeClaim } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { FailureBackoff } from '../../state/failure-backoff.ts'
import { isNowLeaving } from './static-pool.ts'

const minute = 60_000
const backoff = { freeFailures: 0, baseMs: 1000, capMs: minute, memoryMs: 60 * minute } as const

/**
 * Holds NodePools back whose claims go without ever having had an instance: a cloud that has none would
 * otherwise be asked again as fast as claims can be written.
 */
export class LaunchPauses {
  readonly #failures: FailureBackoff

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#failures = new FailureBackoff(clock, backoff)
  }

  note(change: Change<NodeClaim>): void {
    const { metadata, status } = change.object
    const pool = metadata.labels?.[labels.nodePool] ?? ''
    const isLaunched = (status?.providerID ?? '') !== ''
    if (isLaunched) {
      const isNew = change.kind === 'updated' && (change.old.status?.providerID ?? '') === ''
      if (isNew) this.#failures.forget([pool])
      return
    }
    // Claims that fail together are one failure.
    if (isNowLeaving(change) && this.leftMs(pool) === 0) this.#failures.note([pool])
  }

  /** How long nothing should be launched for the pool. */
  leftMs(pool: string): number {
    return this.#failures.leftMs(pool)
  }

  /** Whether the last launch of the pool failed: one claim is enough to find out whether there are instances again. */
  isProbing(pool: string): boolean {
    return this.#failures.hasFailed(pool)
  }
}
