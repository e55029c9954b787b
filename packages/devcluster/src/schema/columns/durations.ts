const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day

/** Spans at most this long show two units. */
const twoUnits = { minutes: 10 * minute, hours: 8 * hour, days: 8 * day, years: 8 * year }

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`
}

/** A time span as `kubectl get` shows it: `45s`, `5m30s`, `3h`, `12d`. */
export function humanDuration(spanMs: number): string {
  if (spanMs < -1000) return '<invalid>'
  if (spanMs < 0) return '0s'
  const span = Math.floor(spanMs / second) * second
  if (span < 2 * minute) return `${span / second}s`
  const minutes = Math.floor(span / minute)
  if (span < twoUnits.minutes) return pair(minutes, 'm', (span / second) % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(span / hour)
  if (span < twoUnits.hours) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(span / day)
  if (span < twoUnits.days) return pair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(span / year)
  return span < twoUnits.years ? pair(years, 'y', days % 365, 'd') : `${years}y`
}

/** Age of a timestamp; `<unknown>` when there is none. */
export function age(timestamp: unknown, nowMs: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>'
  const at = Date.parse(timestamp)
  return Number.isNaN(at) ? '<unknown>' : humanDuration(nowMs - at)
}
