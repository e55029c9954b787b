/** Applies the faults of any cloud. */
import { ApiError } from '@tenon/devcluster'
import { integerBetween } from '@tenon/runtime'
import type { FaultKind } from '../story.ts'
import type { FaultDependencies } from './api-faults.ts'

const shortestMs = 2 * 60_000

/** Plays single faults, and logs each of them. */
export interface PlayedFaults {
  /** Ends a fault after a random time, at least two minutes if `longestMs` allows it. */
  readonly timed: (kind: FaultKind, longestMs: number, lift: () => void) => void
  /** Does something that the cluster may reject, as it may reject a user's request. */
  readonly asUser: (what: string, work: () => void) => void
}

export function playedFaults({ clock, log, weather }: FaultDependencies): PlayedFaults {
  return {
    timed: (kind, longestMs, lift) => {
      log.record('fault', kind)
      clock.after(integerBetween(weather.source(kind), Math.min(longestMs, shortestMs), longestMs), lift)
    },
    asUser: (what, work) => {
      log.record('fault', what)
      try {
        work()
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
      }
    },
  }
}
