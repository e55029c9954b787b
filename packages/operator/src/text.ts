/** Lists of names and times in events and logs. */
import type { Pod } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { keyOf } from './state/pods/pods.ts'

/** `namespace/name` of the first pods. */
export function podList(pods: readonly Pod[]): string {
  return shortened(pods.map((pod) => keyOf(pod.metadata)))
}

/** The first names of a list that may be long. */
export function shortened(names: readonly string[]): string {
  const rest = names.length - 5
  return `${names.slice(0, 5).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`
}

/** `MESSAGE, next try at TIME`. */
export function untilText(message: string, untilMs: number): string {
  return `${message}, next try at ${rfc3339(untilMs)}`
}
