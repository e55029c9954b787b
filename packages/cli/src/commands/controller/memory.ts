/**
 * Soft memory limits: the closer the process comes to one, the more garbage it collects, and it says so before it is ended
 * (operations.md 1, scale.md 2).
 */
import type { MemoryLimit } from '@tenon/operator'
import type { Clock, Logger } from '@tenon/runtime'

const share = 0.9
const periodMs = 2000
/** Collecting takes time too: a process that really needs its memory must still get work done. */
const pauseMs = 10_000
const warningPauseMs = 10 * 60_000

/** A limit, and how to raise it. */
export interface GuardedLimit extends MemoryLimit {
  readonly fix: string
}

export interface MemoryGuardOptions {
  readonly limits: readonly GuardedLimit[]
  /** Collects garbage; what is only cached goes with it. */
  readonly collect: () => void
  /** Gives up what is not needed to decide; undefined if nothing is to be given up. */
  readonly reduce: (() => void) | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** Watches the memory until `signal` aborts. Never rejects. */
export async function guardMemory(options: MemoryGuardOptions, signal: AbortSignal): Promise<void> {
  const { limits, collect, reduce, clock, logger } = options
  const isNear = ({ limitBytes, usedBytes }: GuardedLimit) => usedBytes() > limitBytes * share
  const mayWarnAt = new Map<GuardedLimit, number>()
  let isReduced = reduce === undefined
  let waitMs = periodMs
  while (await slept(clock, waitMs, signal)) {
    waitMs = periodMs
    if (!limits.some(isNear)) continue
    collect()
    waitMs = pauseMs
    if (!isReduced && limits.some(isNear)) {
      isReduced = true
      reduce?.()
      collect()
      logger.warn('left out metrics of single pods and nodes, as memory in use is near its limit', {
        fix: 'raise the limit and restart, or set --metrics-detail=reduced; docs/sizing.md says how much a cluster needs',
      })
    }
    for (const limit of limits.filter(isNear)) {
      if (clock.monotonic() < (mayWarnAt.get(limit) ?? Number.NEGATIVE_INFINITY)) continue
      mayWarnAt.set(limit, clock.monotonic() + warningPauseMs)
      const { name, limitBytes, fix } = limit
      logger.warn('memory in use is near its limit: above it the process ends', {
        limit: name,
        usedBytes: limit.usedBytes(),
        limitBytes,
        fix: `${fix}; docs/sizing.md says how much a cluster needs`,
      })
    }
  }
}

async function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal)
    return true
  } catch {
    // `sleep` only rejects when the signal aborts.
    return false
  }
}
