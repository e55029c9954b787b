import type { JSX } from 'preact'
import { ageText, localDay, localTime, utcTime } from '../format.ts'
import { nowMs } from '../state/store.ts'

/** A time in local time, with UTC on hover. */
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

/** Of another day than this one, where a time alone would be taken for one of today. */
export function isOtherDay(at: string): boolean {
  return localDay(Date.parse(at)) !== localDay(nowMs.value)
}

/** How long ago; nothing for a time that is not known. */
export function Age({ since }: { readonly since: string | undefined }): JSX.Element | null {
  if (since === undefined) return null
  const ms = Date.parse(since)
  return (
    <time dateTime={since} title={`${localTime(ms, true)} · ${utcTime(ms)}`}>
      {ageText(ms, nowMs.value)}
    </time>
  )
}
