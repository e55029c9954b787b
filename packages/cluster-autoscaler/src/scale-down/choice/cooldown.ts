/** When nothing is deleted for a while (cluster-autoscaler.md 6.1). */
import type { ScaleDownOptions } from '../../options/options.ts'

type Delays = Pick<
  ScaleDownOptions,
  'delayAfterAddMs' | 'delayAfterDeleteMs' | 'delayAfterFailureMs' | 'delayTypeLocal'
>

/** What happened last of each kind; undefined = never. */
export interface LastTimes {
  readonly scaleUpMs: number | undefined
  readonly deletionMs: number | undefined
  readonly failureMs: number | undefined
}

interface CooldownInput {
  readonly nowMs: number
  /** Very new pods wait: what they need is not known yet. */
  readonly isForbidden: boolean
  readonly last: LastTimes
  readonly delays: Delays
}

export function isInCooldown({ nowMs, isForbidden, last, delays }: CooldownInput): boolean {
  if (isForbidden) return true
  return !delays.delayTypeLocal && nowMs < quietFromMs(last, delays)
}

/** Until when each group is left alone, by group id; none with the global delay type. */
export function delayedGroups(
  nowMs: number,
  groups: ReadonlyMap<string, LastTimes>,
  delays: Delays,
): ReadonlyMap<string, number> {
  if (!delays.delayTypeLocal) return new Map()
  const until = [...groups].map(([id, last]): [string, number] => [id, quietFromMs(last, delays)])
  return new Map(until.filter(([, ms]) => ms > nowMs))
}

/** When the last of the delays is over. */
function quietFromMs(last: LastTimes, delays: Delays): number {
  return Math.max(
    end(last.scaleUpMs, delays.delayAfterAddMs),
    end(last.deletionMs, delays.delayAfterDeleteMs),
    end(last.failureMs, delays.delayAfterFailureMs),
  )
}

function end(atMs: number | undefined, delayMs: number): number {
  return atMs === undefined ? Number.NEGATIVE_INFINITY : atMs + delayMs
}
