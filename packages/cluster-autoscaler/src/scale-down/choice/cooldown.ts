/** When nothing is deleted for some time (cluster-autoscaler.md 6.1). */
import type { ScaleDownOptions } from '../../options/options.ts'

type Delays = Pick<
  ScaleDownOptions,
  'delayAfterAddMs' | 'delayAfterDeleteMs' | 'delayAfterFailureMs' | 'delayTypeLocal'
>

/** The last event of each kind; undefined = never. */
export interface LastTimes {
  readonly scaleUpMs: number | undefined
  readonly deletionMs: number | undefined
  readonly failureMs: number | undefined
}

interface CooldownInput {
  readonly nowMs: number
  /** Very new pods are pending, so that their needs are not known yet. */
  readonly isForbidden: boolean
  readonly last: LastTimes
  readonly delays: Delays
}

export function isInCooldown({ nowMs, isForbidden, last, delays }: CooldownInput): boolean {
  if (isForbidden) return true
  return !delays.delayTypeLocal && nowMs < quietFromMs(last, delays)
}

/** By group id: until when it is left alone; empty with the global delay type. */
export function delayedGroups(
  nowMs: number,
  groups: ReadonlyMap<string, LastTimes>,
  delays: Delays,
): ReadonlyMap<string, number> {
  if (!delays.delayTypeLocal) return new Map()
  const until = [...groups].map(([id, last]): [string, number] => [id, quietFromMs(last, delays)])
  return new Map(until.filter(([, ms]) => ms > nowMs))
}

/** When the last delay ends. */
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
