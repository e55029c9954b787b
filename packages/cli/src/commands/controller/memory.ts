/** A soft memory limit: the closer the process comes to it, the more garbage it collects (operations.md 1). */
import type { Clock, Logger } from '@tenon/runtime'

const share = 0.9
const periodMs = 2000
/** Collecting takes time too: a process that really needs its memory must still get work done. */
const pauseMs = 10_000
const warningPauseMs = 10 * 60_000

export interface MemoryGuardOptions {
  readonly limitBytes: number
  /** Current memory of the process. */
  readonly usedBytes: () => number
  /** Collects garbage. */
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
    // `sleep` only rejects when the signal aborts.
    return false
  }
}
