import type { Clock, Logger, Random } from '@tenon/runtime'
import { ApiError, type LocalApi } from '../contract.ts'
import type { ResourceTable } from '@tenon/filters'
import type { KubeletSettings } from './settings.ts'
import type { TimerQueue } from './timer-queue.ts'

/** What all kubelets of a process share. */
export interface KubeletContext {
  readonly api: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: KubeletSettings
  readonly timers: TimerQueue
  readonly table: ResourceTable
  /** When this process began to run kubelets. */
  readonly startedAt: number
}

/** Runs a write; a refusal by the API server is logged and returns `undefined`. */
export function attempt<T>(logger: Logger, failure: string, write: () => T): T | undefined {
  try {
    return write()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    logger.debug(failure, { error })
    return undefined
  }
}
