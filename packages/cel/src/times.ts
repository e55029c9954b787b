import type { Duration } from '@marcbachmann/cel-js/evaluator'

/** Formats a timestamp as `string()` does. */
export function timestampText(time: Date): string {
  return time
    .toISOString()
    .replace(/\.000Z$/, 'Z')
    .replace(/(\.\d*?)0+Z$/, '$1Z')
}

/** Formats a duration as `string()` does: in seconds. */
export function durationText(duration: Duration): string {
  const nanos = duration.seconds * 1_000_000_000n + BigInt(duration.nanos)
  const magnitude = nanos < 0n ? -nanos : nanos
  const fraction = (magnitude % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '')
  const whole = magnitude / 1_000_000_000n
  return `${nanos < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}s`
}
