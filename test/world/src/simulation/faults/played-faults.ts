/** Applies the faults of any cloud. */
import { ApiError } from '@tenon/devcluster'
import { integerBetween } from '@tenon/runtime'
import type { FaultKind } from '../story.ts'
import type { FaultDependencies } from './api-faults.ts'

const shortestMs = 2 * 60_000

/** Plays single faults, each noted in the log. */
export interface PlayedFaults {
  /** Lifts a fault after a time that is drawn, two minutes at least where `longestMs` allows it. */
  readonly timed: (kind: FaultKind, longestMs: number, lift: () => void) => void
  /** Does something that the cluster may refuse, as it may refuse a person. */
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
