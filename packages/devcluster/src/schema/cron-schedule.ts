import { parseDuration, parseSchedule } from '@tenon/api'

/** The times at which a CronJob runs, in milliseconds since the Unix epoch. */
export interface CronSchedule {
  /** The first run after a time; undefined if there is none. */
  next(afterMs: number): number | undefined
  /** The last run at or before `nowMs` and after `afterMs`; undefined if there is none. */
  last(afterMs: number, nowMs: number): number | undefined
}

const every = '@every '

/** @returns undefined for an invalid schedule or time zone. */
export function cronSchedule(schedule: string, timeZone: string): CronSchedule | undefined {
  const cron = parseSchedule(schedule.startsWith(every) ? '@daily' : schedule, timeZone)
  if (cron === undefined) return undefined
  if (schedule.startsWith(every)) return constantDelay(schedule.slice(every.length))
  return {
    next: (afterMs) => cron.nextRun(new Date(afterMs))?.getTime(),
    last(afterMs, nowMs) {
      // The library only looks before a time.
      const run = cron.previousRuns(1, new Date(nowMs + 1))[0]?.getTime()
      return run !== undefined && run > afterMs ? run : undefined
    },
  }
}

function constantDelay(text: string): CronSchedule | undefined {
  const ms = parseDuration(text.trim())
  if (ms === undefined || ms <= 0) return undefined
  const delay = Math.max(1000, Math.floor(ms / 1000) * 1000)
  return {
    next: (afterMs) => Math.floor(afterMs / 1000) * 1000 + delay,
    last(afterMs, nowMs) {
      const start = Math.floor(afterMs / 1000) * 1000
      const passed = Math.floor((nowMs - start) / delay)
      return passed > 0 ? start + passed * delay : undefined
    },
  }
}
