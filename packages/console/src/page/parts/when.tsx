import type { JSX } from 'preact'
import { ageText, localTime, utcTime } from '../format.ts'
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
