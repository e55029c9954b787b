/** Formats amounts, prices and times. */
import { roundedUnits } from '@tenon/ask/rounding'

/** A price per hour; small prices have four decimals, as in `tenon cost`. */
export function priceText(price: number | undefined, digits = 4): string {
  return price === undefined ? '?' : decimalText(price, digits)
}

/** With `?n` for `n` unknown prices, which the sum does not include. */
export function sumText(perHour: number | undefined, unpriced: number, digits = 4): string {
  const unknown = unpriced === 0 ? '' : ` ?${unpriced}`
  return perHour === undefined
    ? `?${unpriced === 0 ? '' : unpriced}`
    : `${decimalText(perHour, digits)}${unknown}`
}

/** Rounds as `tenon cost` does. */
function decimalText(amount: number, digits: number): string {
  return (roundedUnits(amount, digits) / 10 ** digits).toFixed(digits)
}

/** Whole percent; `-` if a value is unknown or there is no capacity. */
export function percentText(used: number | undefined, allocatable: number | undefined): string {
  const share = shareOf(used, allocatable)
  return share === undefined ? '-' : `${Math.round(share * 100)}%`
}

/** From 0 on; undefined if a value is unknown or there is no capacity. */
export function shareOf(used: number | undefined, allocatable: number | undefined): number | undefined {
  if (used === undefined || allocatable === undefined || !(allocatable > 0)) return undefined
  return used / allocatable
}

const binaryUnits = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']

/** An amount of a resource; `?` if unknown. */
export function amountText(resource: string, amount: number | undefined): string {
  if (amount === undefined) return '?'
  if (resource === 'cpu') return trimmed(amount / 1000)
  if (resource !== 'memory' && !resource.endsWith('storage')) return trimmed(amount)
  let scaled = amount
  let unit = 0
  while (scaled >= 1024 && unit < binaryUnits.length - 1) {
    scaled /= 1024
    unit++
  }
  return `${trimmed(scaled)}${binaryUnits[unit] ?? ''}`
}

function trimmed(amount: number): string {
  return Number(amount.toFixed(amount < 10 ? 2 : amount < 100 ? 1 : 0)).toString()
}

/** The age in the two largest units: `3d4h`, `5m10s`. */
export function ageText(fromMs: number, nowMs: number): string {
  if (Number.isNaN(fromMs)) return '?'
  const seconds = Math.max(0, Math.floor((nowMs - fromMs) / 1000))
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(seconds / unit))
  if (days) return `${days}d${(hours ?? 0) % 24}h`
  if (hours) return `${hours}h${(minutes ?? 0) % 60}m`
  if (minutes) return `${minutes}m${seconds % 60}s`
  return `${seconds}s`
}

/** Shortens a name to `most` characters and keeps its end, which distinguishes names. */
export function elided(name: string, most: number): string {
  const characters = Array.from(name)
  if (characters.length <= most) return name
  const end = Math.floor((most - 1) / 2)
  return `${characters.slice(0, most - 1 - end).join('')}…${characters.slice(-end).join('')}`
}

/** Created once: constructing a format is a hundred times slower than using it. */
const [timeOfDay, timeWithDate] = [{ second: '2-digit' }, { month: 'short', day: 'numeric' }].map(
  (parts) =>
    new Intl.DateTimeFormat(undefined, {
      ...(parts as Intl.DateTimeFormatOptions),
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    }),
) as [Intl.DateTimeFormat, Intl.DateTimeFormat]

/**
 * Local time; `?` if invalid.
 * @param withDate if the time may be on another day.
 */
export function localTime(ms: number, withDate: boolean): string {
  if (Number.isNaN(ms)) return '?'
  return (withDate ? timeWithDate : timeOfDay).format(ms)
}

const dayOfYear = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** The local day, such as `Nov 27, 2026`; `?` if invalid. */
export function localDay(ms: number): string {
  return Number.isNaN(ms) ? '?' : dayOfYear.format(ms)
}

/** `2026-11-27 08:15:00 UTC`. */
export function utcTime(ms: number): string {
  if (Number.isNaN(ms)) return '?'
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** A field of a CSV file; text that a spreadsheet would read as a formula is escaped. */
export function csvField(value: string | number): string {
  const isFormula = typeof value === 'string' && /^[=+\-@\t\r]/.test(value)
  const text = isFormula ? `'${value}` : String(value)
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
