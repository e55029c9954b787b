/** How the budgets of a NodePool change with time (disruption.md 6, ask.md 2). */
import { type Budget, type DisruptionReason, parseSchedule } from '@tenon/api'
import { allowedDisruptions, budgetDurationMs } from './budgets.ts'

/** A time in which a NodePool allows the same number of disruptions. */
export interface BudgetWindow {
  /** Unix milliseconds; the first window begins at the time of the question. */
  readonly fromMs: number
  /** Undefined when no known change ends it. */
  readonly untilMs: number | undefined
  /** See {@link allowedDisruptions}. */
  readonly allowed: number
}

/** How far ahead windows are computed. A schedule may name 29 February, so it covers a leap year. */
const horizonMs = 5 * 366 * 24 * 3_600_000
/** The maximum number of changes that are followed, for budgets that change all the time. */
const mostChanges = 500

/**
 * Windows from now on, in order. The number of nodes is assumed to stay the same.
 * @param total nodes of the pool that count.
 * @param timeZone of schedules.
 */
export function* budgetWindows(
  budgets: readonly Budget[],
  reason: DisruptionReason,
  total: number,
  nowMs: number,
  timeZone?: string,
): Generator<BudgetWindow, undefined, undefined> {
  let fromMs = nowMs
  let allowed = allowedDisruptions(budgets, reason, total, nowMs, timeZone)
  let atMs: number | undefined = nowMs
  for (let changes = 0; changes < mostChanges && fromMs - nowMs < horizonMs; changes++) {
    atMs = nextBudgetChangeMs(budgets, atMs, timeZone, reason)
    if (atMs === undefined) break
    const then = allowedDisruptions(budgets, reason, total, atMs, timeZone)
    if (then === allowed) continue
    yield { fromMs, untilMs: atMs, allowed }
    fromMs = atMs
    allowed = then
  }
  yield { fromMs, untilMs: undefined, allowed }
}

/**
 * When one of the budgets next begins or ends, in Unix milliseconds.
 * @param reason undefined: any.
 */
export function nextBudgetChangeMs(
  budgets: readonly Budget[],
  nowMs: number,
  timeZone?: string,
  reason?: DisruptionReason,
): number | undefined {
  const times = budgets.flatMap(({ schedule, duration, reasons }) => {
    const durationMs = budgetDurationMs(duration)
    const cron = parseSchedule(schedule ?? '', timeZone)
    const isOther = reason !== undefined && reasons !== undefined && !reasons.includes(reason)
    if (cron === undefined || durationMs === undefined || isOther) return []
    const begunMs = cron.nextRun(new Date(nowMs - durationMs))?.getTime()
    if (begunMs === undefined) return []
    // The end of a window that is open now is the first moment after it.
    return [begunMs > nowMs ? begunMs : begunMs + durationMs]
  })
  return times.length === 0 ? undefined : Math.min(...times)
}
