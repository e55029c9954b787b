/** What the text of a pause says, in annotation `tenon.sh/paused` and in ConfigMap `tenon-brake` (ask.md 8). */
import { rfc3339 } from '@tenon/runtime'

/** What a pause can hold; `voluntary` is consolidation, drift and emptiness. */
export type Holdable = 'voluntary' | Included
/** What it holds only where it says so. */
export type Included = (typeof includable)[number]
export const includable = ['launches', 'expiration', 'repair'] as const

/** One order to pause. */
export interface PauseValue {
  /** Unix milliseconds; a pause without an end lasts until somebody takes it back. */
  readonly untilMs?: number
  /** When it was given, in Unix milliseconds; as far as it says so. */
  readonly sinceMs?: number
  readonly reason?: string
  readonly includes: readonly Included[]
}

/** What a text says. Whatever cannot be read is a pause: somebody meant to stop something. */
export type PauseReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'paused'; readonly value: PauseValue }
  /** `problem` is a clause without a full stop; `value` is what could be read. */
  | { readonly kind: 'malformed'; readonly value: PauseValue; readonly problem: string }

const forms = `use "true", a time such as "2026-11-27T14:00:00Z", or JSON such as {"until":"2026-11-27T14:00:00Z","reason":"…","includes":["launches"]}`
const timePattern = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
const fields = ['until', 'since', 'reason', 'includes'] as const
/** Longer reasons are cut: they stand in conditions, events and metrics of many objects. */
const longestReason = 500

/** Reads the text of a pause. */
export function readPause(text: string): PauseReading {
  const trimmed = text.trim()
  if (/^false$/i.test(trimmed)) return { kind: 'none' }
  if (/^true$/i.test(trimmed)) return { kind: 'paused', value: { includes: [] } }
  if (trimmed.startsWith('{')) return readObject(trimmed)
  const untilMs = timeOf(trimmed)
  if (untilMs !== undefined) return { kind: 'paused', value: { untilMs, includes: [] } }
  return malformed({ includes: [] }, `"${shown(trimmed)}" is not a pause; ${forms}`)
}

/** The shortest text that says the same. */
export function pauseText({ untilMs, sinceMs, reason, includes }: PauseValue): string {
  if (sinceMs === undefined && reason === undefined && includes.length === 0)
    return untilMs === undefined ? 'true' : rfc3339(untilMs)
  return JSON.stringify({
    ...(untilMs !== undefined && { until: rfc3339(untilMs) }),
    ...(sinceMs !== undefined && { since: rfc3339(sinceMs) }),
    ...(reason !== undefined && { reason }),
    ...(includes.length > 0 && { includes }),
  })
}

function readObject(text: string): PauseReading {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return malformed({ includes: [] }, `its JSON cannot be read (${shown(why)}); ${forms}`)
  }
  const given = new Map(Object.entries(parsed as object))
  const until = given.get('until')
  const since = given.get('since')
  const reason = given.get('reason')
  const includes = includesOf(given.get('includes'))
  const untilMs = timeOf(until)
  const sinceMs = timeOf(since)
  const problems = [
    ...[...given.keys()]
      .filter((key) => !(fields as readonly string[]).includes(key))
      .map((key) => `field "${shown(key)}" is unknown; the fields are ${fields.join(', ')}`),
    ...(until !== undefined && untilMs === undefined ? [timeProblem('until', until)] : []),
    ...(since !== undefined && sinceMs === undefined ? [timeProblem('since', since)] : []),
    ...(reason !== undefined && typeof reason !== 'string' ? ['reason is not a text'] : []),
    ...includes.problems,
  ]
  const value: PauseValue = {
    ...(untilMs !== undefined && { untilMs }),
    ...(sinceMs !== undefined && { sinceMs }),
    ...(typeof reason === 'string' && reason !== '' && { reason: reason.slice(0, longestReason) }),
    includes: includes.known,
  }
  return problems.length === 0 ? { kind: 'paused', value } : malformed(value, problems.join('; '))
}

function includesOf(given: unknown): {
  readonly known: readonly Included[]
  readonly problems: readonly string[]
} {
  if (given === undefined) return { known: [], problems: [] }
  if (!Array.isArray(given)) return { known: [], problems: ['includes is not a list'] }
  const list: readonly unknown[] = given
  const known = includable.filter((each) => list.includes(each))
  const unknown = list.filter((each) => !(includable as readonly unknown[]).includes(each))
  const problems = unknown.map(
    (each) =>
      `includes "${shown(typeof each === 'string' ? each : JSON.stringify(each))}" is unknown; possible are ${includable.join(', ')}`,
  )
  return { known, problems }
}

function timeOf(text: unknown): number | undefined {
  if (typeof text !== 'string' || !timePattern.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

const timeProblem = (field: string, given: unknown): string =>
  `${field} "${shown(typeof given === 'string' ? given : JSON.stringify(given))}" is not a time such as "2026-11-27T14:00:00Z"`

const malformed = (value: PauseValue, problem: string): PauseReading => ({
  kind: 'malformed',
  value,
  problem,
})

/** A part of what somebody wrote, for a message. */
const shown = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
