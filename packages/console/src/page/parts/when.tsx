import type { JSX } from 'preact'
import { ageText, localDay, localTime, utcTime } from '../format.ts'
import { nowMs } from '../state/store.ts'

/** Local time, with UTC on hover. */
export function When({
  at,
  withDate = false,
}: {
  readonly at: string
  readonly withDate?: boolean
}): JSX.Element {
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={utcTime(ms)}>
      {localTime(ms, withDate)}
    </time>
  )
}

/** Whether a time is not today, so that its date has to be shown. */
export function isOtherDay(at: string): boolean {
  return localDay(Date.parse(at)) !== localDay(nowMs.value)
}

/** The age of a time; nothing if the time is unknown. */
export function Age({ since }: { readonly since: string | undefined }): JSX.Element | null {
  if (since === undefined) return null
  const ms = Date.parse(since)
  return (
    <time dateTime={since} title={`${localTime(ms, true)} · ${utcTime(ms)}`}>
      {ageText(ms, nowMs.value)}
    </time>
  )
}
