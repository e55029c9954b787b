import { ownValue } from './own.ts'
const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  // Micro sign and Greek mu.
  '\u00b5s': 1e-3,
  '\u03bcs': 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

const whole = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|[\u00b5\u03bc]s|ms|s|m|h))+$/
const part = /(\d+\.?\d*|\.\d+)(ns|us|[\u00b5\u03bc]s|ms|s|m|h)/g

/** Cache: the durations of a few NodePools are parsed for each of their nodes, again and again. */
const known = new Map<string, number | undefined>()
const mostKnown = 1000

/**
 * Parses a Go duration (`1h30m`, `90s`, `1.5h`).
 * @returns undefined if `text` is not one.
 */
export function parseDuration(text: string): number | undefined {
  const before = known.get(text)
  if (before !== undefined || known.has(text)) return before
  if (known.size >= mostKnown) known.clear()
  const ms = parsed(text)
  known.set(text, ms)
  return ms
}

function parsed(text: string): number | undefined {
  if (text === '0') return 0
  if (!whole.test(text)) return undefined
  let total = 0
  for (const [, amount = '0', unit = 's'] of text.matchAll(part))
    total += Number(amount) * (ownValue(unitMs, unit) as number)
  return text.startsWith('-') ? -total : total
}

/**
 * Parses a duration that may be `Never` (api.md 1.2 DUR-N).
 * @returns Infinity for `Never` or undefined.
 */
export function parseNillableDuration(text: string | undefined): number | undefined {
  return text === undefined || text === 'Never' ? Number.POSITIVE_INFINITY : parseDuration(text)
}

/** Prints a duration as Go does, rounded to milliseconds: `30s`, `1m30s`, `24h0m0s` (api.md 1.2). */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms > 0 && ms < 1000) return `${ms}ms`
  const seconds = ms / 1000
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  const rest = Number((seconds % 60).toFixed(3))
  if (hours > 0) return `${hours}h${minutes}m${rest}s`
  if (minutes > 0) return `${minutes}m${rest}s`
  return `${rest}s`
}
