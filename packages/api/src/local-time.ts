/** Wall clocks of IANA time zones. A wall time is in milliseconds, as if the clock on the wall showed UTC. */

/** Offsets from UTC, by canonical name: a formatter is slow to make. */
const formats = new Map<string, Intl.DateTimeFormat>()
const longestName = 64
const dayMs = 86_400_000

/** @returns the canonical name; undefined if the IANA database lacks the zone. Offsets are not names. */
export function timeZoneOf(name: string): string | undefined {
  // Each decision asks anew.
  if (name === 'UTC' || formats.has(name)) return name
  if (name.length > longestName || /^[+-]/.test(name)) return undefined
  try {
    const format = formatOf(name)
    const zone = format.resolvedOptions().timeZone
    formats.set(zone, format)
    return zone
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** @param zone as {@link timeZoneOf} returns it. */
export function wallTime(nowMs: number, zone: string): number {
  return nowMs + offsetMs(nowMs, zone)
}

/**
 * The Unix milliseconds at which clocks show a wall time: the first time if they show it twice, and the first moment after
 * it if they skip it.
 * @param zone as {@link timeZoneOf} returns it.
 */
export function instantOf(wallMs: number, zone: string): number {
  const [before, after] = [offsetMs(wallMs - dayMs, zone), offsetMs(wallMs + dayMs, zone)]
  if (offsetMs(wallMs - before, zone) === before) return wallMs - before
  if (offsetMs(wallMs - after, zone) === after) return wallMs - after
  // Skipped: clocks change between these two moments.
  let [low, high] = [wallMs - after, wallMs - before]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetMs(middle, zone) === before) low = middle
    else high = middle
  }
  return high
}

const formatOf = (timeZone: string) =>
  new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })

/** Clocks change at whole quarters of an hour. */
const quarterMs = 15 * 60_000
/** Offsets by quarter of an hour, by canonical name of the zone: formatting a time is slow, too. */
const offsets = new Map<string, Map<number, number>>()
const mostOffsets = 10_000

function offsetMs(nowMs: number, zone: string): number {
  if (zone === 'UTC') return 0
  const quarter = Math.floor(nowMs / quarterMs)
  let known = offsets.get(zone)
  if (known === undefined || known.size >= mostOffsets) offsets.set(zone, (known = new Map()))
  let ms = known.get(quarter)
  if (ms === undefined) known.set(quarter, (ms = offsetAt(quarter * quarterMs, zone)))
  return ms
}

function offsetAt(nowMs: number, zone: string): number {
  const format = formats.get(zone) ?? formatOf(zone)
  const text = format.formatToParts(nowMs).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign = '+', hours = '0', minutes = '0', seconds = '0'] =
    /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text) ?? []
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
  return sign === '-' ? -ms : ms
}
