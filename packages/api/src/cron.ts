/** Schedules as Kubernetes and Karpenter write them: five cron fields or a macro. */
import { instantOf, timeZoneOf, wallTime } from './local-time.ts'
import { ownValue } from './own.ts'
import { Cron } from 'croner'

const macros: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

/** Largest value of each field, how many values it has, and the names it takes. */
const fields = [
  { max: 59, width: 60, names: '' },
  { max: 23, width: 24, names: '' },
  { max: 31, width: 31, names: '' },
  { max: 12, width: 12, names: '|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec' },
  { max: 6, width: 7, names: '|sun|mon|tue|wed|thu|fri|sat' },
] as const

export interface Schedule {
  /** The first run after `from`, or null if there is none. */
  nextRun(from: Date): Date | null
  /** The last `count` runs before `from`, latest first. */
  previousRuns(count: number, from: Date): readonly Date[]
}

/**
 * Parses a schedule in an IANA time zone. When clocks change, a time that they skip runs at the first moment after it, and
 * one that they show twice runs once; a schedule of every hour (`*`) goes by elapsed time.
 * @returns undefined if the schedule or the zone is invalid.
 */
export function parseSchedule(schedule: string, timeZone = 'UTC'): Schedule | undefined {
  const zone = timeZoneOf(timeZone)
  if (zone === undefined) return undefined
  const texts = (ownValue(macros, schedule) ?? schedule).trim().split(/\s+/)
  const expression = texts.map((text, i) => dialect(text, i))
  if (expression.length !== fields.length || expression.includes(undefined)) return undefined
  const isByWall = expression[1] !== '*' && zone !== 'UTC'
  try {
    const cron = new Cron(expression.join(' '), { timezone: isByWall ? 'UTC' : zone, paused: true })
    return isByWall ? byWall(cron, zone) : cron
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined
    throw error
  }
}

/** No clock change is larger. */
const longestShiftMs = 3 * 3_600_000

/** @param cron of wall times. */
function byWall(cron: Cron, zone: string): Schedule {
  return {
    nextRun(from) {
      let wall: Date | null = new Date(wallTime(from.getTime(), zone))
      while ((wall = cron.nextRun(wall)) !== null) {
        const run = instantOf(wall.getTime(), zone)
        if (run > from.getTime()) return new Date(run)
      }
      return null
    },
    previousRuns(count, from) {
      const runs = new Set<number>()
      let wall: Date | undefined = new Date(wallTime(from.getTime(), zone) + longestShiftMs)
      while (runs.size < count && (wall = cron.previousRuns(1, wall)[0]) !== undefined) {
        const run = instantOf(wall.getTime(), zone)
        if (run < from.getTime()) runs.add(run)
      }
      return Array.from(runs, (run) => new Date(run))
    },
  }
}

/**
 * Translates a field for the cron library, which accepts more than Kubernetes does, but not `N/step`.
 * @returns undefined if Kubernetes would reject the field.
 */
function dialect(text: string, index: number): string | undefined {
  const field = fields[index]
  if (field === undefined) return undefined
  const value = `(?:\\d+${field.names})`
  const item = new RegExp(`^(?:([*?])|(${value})(?:-(${value}))?)(?:/(\\d+))?$`, 'i')
  const items = text.split(',').map((each): string | undefined => {
    const [, star, from, to, step] = item.exec(each) ?? []
    if (star === undefined && from === undefined) return undefined
    // The library accepts 7 as Sunday; Kubernetes rejects it.
    if ([from, to].some((bound) => Number(bound) > field.max)) return undefined
    const range =
      star === undefined
        ? `${from}${to === undefined && step === undefined ? '' : `-${to ?? field.max}`}`
        : '*'
    if (step === undefined || Number(step) === 1) return range
    return `${range}/${Math.min(Number(step), field.width)}`
  })
  return items.includes(undefined) ? undefined : items.join(',')
}
