/** How many nodes of a pool may be disrupted now (disruption.md 6, api.md 3.7). */
import { type Budget, type DisruptionReason, parseDuration, parseSchedule } from '@tenon/api'

/** What a pool allows to which no budget applies. */
export const unlimited = 2_147_483_647

/**
 * How many nodes may be disrupted for `reason` at the same time, including those that are being disrupted now. An
 * unreadable budget blocks the pool for every reason.
 * @param total nodes of the pool that count.
 * @param timeZone of schedules.
 */
export function allowedDisruptions(
  budgets: readonly Budget[],
  reason: DisruptionReason,
  total: number,
  nowMs: number,
  timeZone?: string,
): number {
  let allowed = unlimited
  for (const budget of budgets) {
    const value = budgetValue(budget, total, nowMs, timeZone)
    if (value === undefined) return 0
    if (budget.reasons === undefined || budget.reasons.includes(reason)) allowed = Math.min(allowed, value)
  }
  return allowed
}

/** The first budget that cannot be read. It blocks its pool. */
export function unreadableBudget(budgets: readonly Budget[], nowMs: number): Budget | undefined {
  return budgets.find((budget) => budgetValue(budget, 100, nowMs) === undefined)
}

function budgetValue(budget: Budget, total: number, nowMs: number, timeZone?: string): number | undefined {
  const active = isActive(budget, nowMs, timeZone)
  if (active === undefined) return undefined
  if (!active) return unlimited
  const percent = /^(100|\d{1,2})%$/.exec(budget.nodes)
  if (percent !== null) return Math.ceil((Number(percent[1]) * total) / 100)
  return /^\d{1,15}$/.test(budget.nodes) ? Math.min(unlimited, Number(budget.nodes)) : undefined
}

/** @returns undefined when the schedule or the duration cannot be read. */
function isActive({ schedule, duration }: Budget, nowMs: number, timeZone?: string): boolean | undefined {
  if (schedule === undefined && duration === undefined) return true
  const durationMs = budgetDurationMs(duration)
  const cron = parseSchedule(schedule ?? '', timeZone)
  if (durationMs === undefined || cron === undefined) return undefined
  const hit = cron.nextRun(new Date(nowMs - durationMs))
  return hit === null || hit.getTime() <= nowMs
}

/** The longest duration of Go, 292 years. Times further back are not dates. */
const longestMs = 2 ** 63 / 1e6

/** @returns undefined if it cannot be read. */
export function budgetDurationMs(duration: Budget['duration']): number | undefined {
  const ms = parseDuration(duration ?? '')
  return ms !== undefined && Math.abs(ms) < longestMs ? ms : undefined
}
