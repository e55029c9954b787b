/** A soft memory limit: the closer the process comes to it, the more it frees (operations.md 1). */
import type { Clock, Logger } from '@tenon/runtime'

const share = 0.9
const periodMs = 2000
/** Collecting takes time as well; a process that needs its memory must not do nothing else. */
const pauseMs = 10_000
const warningPauseMs = 10 * 60_000

export interface MemoryGuardOptions {
  readonly limitBytes: number
  /** Memory that this process holds now. */
  readonly usedBytes: () => number
  /** Frees what is not in use. */
  readonly collect: () => void
  readonly clock: Clock
  readonly logger: Logger
}

/** Watches the memory until `signal` aborts. Never rejects. */
export async function guardMemory(options: MemoryGuardOptions, signal: AbortSignal): Promise<void> {
  const { limitBytes, usedBytes, collect, clock, logger } = options
  const softLimitBytes = limitBytes * share
  let mayWarnAt = Number.NEGATIVE_INFINITY
  let waitMs = periodMs
  while (await slept(clock, waitMs, signal)) {
    waitMs = periodMs
    const before = usedBytes()
    if (before <= softLimitBytes) continue
    collect()
    waitMs = pauseMs
    const usedNow = usedBytes()
    logger.debug('freed memory', { limitBytes, before, after: usedNow })
    if (usedNow <= softLimitBytes || clock.monotonic() < mayWarnAt) continue
    mayWarnAt = clock.monotonic() + warningPauseMs
    logger.warn('memory in use is near its limit', {
      usedBytes: usedNow,
      limitBytes,
      fix: 'raise MEMORY_LIMIT',
    })
  }
}

async function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal)
    return true
  } catch {
    // Only the end of the process ends a sleep early.
    return false
  }
}
