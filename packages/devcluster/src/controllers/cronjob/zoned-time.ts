import { rfc3339 } from '@tenon/runtime'

/** RFC 3339 with the offset of a time zone at that time (`2026-07-01T12:00:00+02:00`). */
export function zonedTime(ms: number, timeZone: string | undefined): string {
  const minutes = timeZone === undefined ? 0 : offsetMinutes(ms, timeZone)
  if (minutes === 0) return rfc3339(ms)
  const size = Math.abs(minutes)
  const offset = [Math.floor(size / 60), size % 60].map((part) => String(part).padStart(2, '0')).join(':')
  return `${rfc3339(ms + minutes * 60_000).slice(0, 19)}${minutes < 0 ? '-' : '+'}${offset}`
}

function offsetMinutes(ms: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' }).formatToParts(ms)
  const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours = '0', minutes = '0'] = /GMT([+-])(\d+)(?::(\d+))?/.exec(name) ?? []
  if (sign === undefined) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}
