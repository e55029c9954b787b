/** Whether a cluster and its groups are healthy enough to be scaled (cluster-autoscaler.md 2.5). Pure. */
import type { Readiness } from './readiness.ts'
import type { AcceptableRange } from './sizes.ts'

export interface HealthSettings {
  readonly okTotalUnreadyCount: number
  /** 0 to 100. */
  readonly maxTotalUnreadyPercentage: number
}

export function isClusterHealthy(totals: Readiness, settings: HealthSettings): boolean {
  return !isTooMany(totals.unready.length, totals.registered.length, settings)
}

/** @param readiness undefined if the group has neither a node nor an instance. */
export function isGroupHealthy(
  range: AcceptableRange,
  readiness: Readiness | undefined,
  settings: HealthSettings,
): boolean {
  if (readiness === undefined) return range.target === 0 || (range.min === 0 && range.target > 0)
  const { ready, unready, notStarted, suspended } = readiness
  const missing = Math.max(0, range.min - ready.length - suspended.length)
  const all = ready.length + unready.length + notStarted.length + suspended.length
  return !isTooMany(missing, all, settings)
}

function isTooMany(count: number, all: number, settings: HealthSettings): boolean {
  return count > settings.okTotalUnreadyCount && 100 * count > settings.maxTotalUnreadyPercentage * all
}
