/** Windows of the week, as annotations name them: `Sat-Sun 00:00-06:00 Europe/Zurich`. */
import { instantOf, timeZoneOf, wallTime } from './local-time.ts'

/** A time of some days of the week, by the clocks of a zone. */
export interface TimeWindow {
  /** By day of the week; Sunday is 0. */
  readonly days: readonly boolean[]
  /** Milliseconds after midnight. */
  readonly fromMs: number
  /** The same; beyond midnight it is larger than a day. */
  readonly toMs: number
  readonly zone: string
}

export type WindowsReading =
  /** At least one. */
  | { readonly windows: readonly TimeWindow[] }
  /** A clause without a full stop. */
  | { readonly problem: string }

export interface WindowsState {
  /** Whether it is inside one of the windows. */
  readonly isOpen: boolean
  /** When that changes, in Unix milliseconds; undefined if it never does. */
  readonly changeMs: number | undefined
}

export const windowsFix =
  'use windows such as "Sat-Sun 00:00-06:00 Europe/Zurich", several with commas between them'

const mostWindows = 10
const longestText = 500
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const dayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const pattern = /^(?:([a-z]{3})(?:-([a-z]{3}))?\s+)?(\d?\d):(\d\d)-(\d?\d):(\d\d)(?:\s+(\S+))?$/i

/** Days and zone may be left out: every day, and UTC. */
export function readWindows(text: string): WindowsReading {
  const parts = text.length > longestText ? [] : text.split(',')
  if (parts.length === 0 || parts.length > mostWindows)
    return { problem: `it is longer than ${mostWindows} windows and ${longestText} characters` }
  const windows: TimeWindow[] = []
  const zones = new Set<boolean>()
  for (const part of parts) {
    const window = readWindow(part.trim())
    if (window === undefined) return { problem: `"${part.trim().slice(0, 60)}" is not a window` }
    zones.add(window.namesZone)
    windows.push(window)
  }
  if (zones.size > 1) return { problem: 'some windows name a time zone and others do not' }
  return { windows }
}

function readWindow(text: string): (TimeWindow & { readonly namesZone: boolean }) | undefined {
  const [, first, last, ...rest] = pattern.exec(text) ?? []
  const [fromHour = '', fromMinute = '', toHour = '', toMinute = '', zoneName] = rest
  const days = daysOf(first, last)
  const from = minutesOf(fromHour, fromMinute)
  const to = minutesOf(toHour, toMinute)
  const zone = timeZoneOf(zoneName ?? 'UTC')
  if (days === undefined || from === undefined || to === undefined || zone === undefined) return undefined
  if (from === to || from === 24 * 60) return undefined
  const toMs = to * minuteMs + (to < from ? dayMs : 0)
  return { days, fromMs: from * minuteMs, toMs, zone, namesZone: zoneName !== undefined }
}

function daysOf(first: string | undefined, last: string | undefined): readonly boolean[] | undefined {
  if (first === undefined) return dayNames.map(() => true)
  const [from, to] = [first, last ?? first].map((name) => dayNames.indexOf(name.toLowerCase()))
  if (from === undefined || to === undefined || from < 0 || to < 0) return undefined
  return dayNames.map((_, day) => (from <= to ? from <= day && day <= to : day >= from || day <= to))
}

/** Minutes after midnight. */
function minutesOf(hour: string, minute: string): number | undefined {
  const [hours, minutes] = [Number(hour), Number(minute)]
  const isTime = hour !== '' && minutes < 60 && hours * 60 + minutes <= 24 * 60
  return isTime ? hours * 60 + minutes : undefined
}

/** Every window comes back within a week, or in the next if clocks skip it. */
const daysAhead = 16

/** Windows that overlap or follow each other are one. */
export function windowsState(windows: readonly TimeWindow[], nowMs: number): WindowsState {
  const spans = windows
    .flatMap((window) => spansOf(window, nowMs))
    .filter(([from, to]) => to > nowMs && to > from)
    .toSorted(([a], [b]) => a - b)
  const [first] = spans
  if (first === undefined || first[0] > nowMs) return { isOpen: false, changeMs: first?.[0] }
  let end = nowMs
  for (const [from, to] of spans) if (from <= end) end = Math.max(end, to)
  return { isOpen: true, changeMs: end - nowMs > (daysAhead - 1) * dayMs ? undefined : end }
}

/** The moments at which windows begin and end, from now on, in order. */
export function* windowChanges(
  windows: readonly TimeWindow[],
  nowMs: number,
): Generator<{ readonly atMs: number; readonly isOpen: boolean }, undefined, undefined> {
  let state = windowsState(windows, nowMs)
  while (state.changeMs !== undefined) {
    const atMs = state.changeMs
    yield { atMs, isOpen: !state.isOpen }
    state = windowsState(windows, atMs)
  }
}

/** Begin and end, in Unix milliseconds, from yesterday on. */
function spansOf({ days, fromMs, toMs, zone }: TimeWindow, nowMs: number): readonly [number, number][] {
  const today = Math.floor(wallTime(nowMs, zone) / dayMs)
  return Array.from({ length: daysAhead + 1 }, (_, at) => today - 1 + at)
    .filter((day) => days[new Date(day * dayMs).getUTCDay()])
    .map((day) => [instantOf(day * dayMs + fromMs, zone), instantOf(day * dayMs + toMs, zone)])
}
