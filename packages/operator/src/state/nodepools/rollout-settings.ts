/** Canary rollouts of a NodePool in its annotations: settings by users, and the stored state (ask.md 9). */
import { type NodePool, ownValue, parseDuration } from '@tenon/api'
import type { PoolProblem } from './pool-problems.ts'
import { rfc3339 } from '@tenon/runtime'

export const rolloutAnnotations = {
  canary: 'tenon.sh/rollout-canary',
  watch: 'tenon.sh/rollout-watch',
  maxUnhealthy: 'tenon.sh/rollout-max-unhealthy',
  /** Pauses the rollout alone; same syntax as `tenon.sh/paused`. */
  paused: 'tenon.sh/rollout-paused',
  /** Written by the controller: state of the replacements. Without it the rollout starts over. */
  state: 'tenon.sh/rollout-state',
  /** Written by the controller: earlier templates, latest first. */
  history: 'tenon.sh/rollout-history',
} as const

/** Number of nodes, or percentage of the NodePool. */
type Amount = { readonly nodes: number } | { readonly percent: number }

export interface RolloutSettings {
  /** Nodes that are replaced first, and watched before others are. */
  readonly canary: Amount
  /** How long a replacement must stay Ready; milliseconds. */
  readonly watchMs: number
  /** The rollout halts if more replacements are unhealthy. */
  readonly maxUnhealthy: number
}

export type SettingsReading =
  /** Only budgets limit the replacement of drifted nodes. */
  | { readonly kind: 'none' }
  | { readonly kind: 'careful'; readonly settings: RolloutSettings }
  /** No drifted node is replaced until the problems are fixed. */
  | { readonly kind: 'invalid'; readonly problems: readonly PoolProblem[] }

const defaults = { watchMs: 10 * 60_000, maxUnhealthy: 0 } as const

/** Without `tenon.sh/rollout-canary` the other annotations have no effect. */
export function rolloutSettings({ metadata }: NodePool): SettingsReading {
  const text = (name: 'canary' | 'watch' | 'maxUnhealthy') =>
    ownValue(metadata.annotations, rolloutAnnotations[name])?.trim()
  const canary = amountOf(text('canary'))
  const watchMs = watchOf(text('watch'))
  const maxUnhealthy = countOf(text('maxUnhealthy'))
  const problems = [
    ...(canary === 'invalid'
      ? [problem('canary', text('canary'), 'use a number of nodes above 0, such as "2", or "1%" to "100%"')]
      : []),
    ...(watchMs === 'invalid'
      ? [problem('watch', text('watch'), 'use a duration of at least 1s, such as "10m"')]
      : []),
    ...(maxUnhealthy === 'invalid'
      ? [problem('maxUnhealthy', text('maxUnhealthy'), 'use a number of nodes, such as "0" or "1"')]
      : []),
  ]
  if (problems.length > 0) return { kind: 'invalid', problems }
  if (canary === undefined || canary === 'invalid') return { kind: 'none' }
  if (watchMs === 'invalid' || maxUnhealthy === 'invalid') return { kind: 'none' }
  const settings = {
    canary,
    watchMs: watchMs ?? defaults.watchMs,
    maxUnhealthy: maxUnhealthy ?? defaults.maxUnhealthy,
  }
  if ('nodes' in canary && settings.maxUnhealthy >= canary.nodes) {
    const fix = `use less than ${rolloutAnnotations.canary}, or the canaries can never halt the rollout`
    return { kind: 'invalid', problems: [problem('maxUnhealthy', text('maxUnhealthy'), fix)] }
  }
  return { kind: 'careful', settings }
}

/** Number of canaries for a NodePool of this size; at least one. */
export function canaryCount({ canary }: RolloutSettings, poolNodes: number): number {
  return 'nodes' in canary ? canary.nodes : Math.max(1, Math.ceil((canary.percent * poolNodes) / 100))
}

function problem(
  name: 'canary' | 'watch' | 'maxUnhealthy',
  given: string | undefined,
  fix: string,
): PoolProblem {
  const field = `metadata.annotations["${rolloutAnnotations[name]}"]`
  return { field, message: `"${(given ?? '').slice(0, 60)}" cannot be used`, fix }
}

function amountOf(text: string | undefined): Amount | 'invalid' | undefined {
  if (text === undefined) return undefined
  const [, digits = '', percent] = /^(\d{1,6})(%?)$/.exec(text) ?? []
  const number = Number(digits)
  if (digits === '' || number === 0) return 'invalid'
  if (percent === '') return { nodes: number }
  return number <= 100 ? { percent: number } : 'invalid'
}

function watchOf(text: string | undefined): number | 'invalid' | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  return ms === undefined || ms < 1000 || !Number.isFinite(ms) ? 'invalid' : ms
}

function countOf(text: string | undefined): number | 'invalid' | undefined {
  if (text === undefined) return undefined
  return /^\d{1,6}$/.test(text) ? Number(text) : 'invalid'
}

/** Replacement of a drifted node. */
export interface Watched {
  /** Name of the NodeClaim. */
  readonly claim: string
  /** When its NodeClaim was created; Unix milliseconds. */
  readonly sinceMs: number
  /** When it was first seen initialized; Unix milliseconds. */
  readonly initializedMs?: number
  /** UIDs of the controllers of pods that were Ready on the replaced nodes. */
  readonly owners: readonly string[]
  /** Why it is unhealthy. */
  readonly unhealthy?: string
  /** Whether it was healthy for the whole watch. */
  readonly isHealthy?: true
}

export interface RolloutRecord {
  /** Generations of NodePool and node class; another change starts a new rollout. */
  readonly of: string
  readonly replacements: readonly Watched[]
  /** Whether the canaries passed, so that only budgets limit the rest. */
  readonly hasPassed: boolean
  readonly halted?: { readonly atMs: number; readonly drifted: string }
}

/** Controllers whose pods are checked for one replacement, at most. */
const mostOwners = 50
const mostReplacements = 200

export function recordText({ of, replacements, hasPassed, halted }: RolloutRecord): string {
  return JSON.stringify({
    of,
    ...(hasPassed && { passed: true }),
    ...(halted && { halted: { at: rfc3339(halted.atMs), drifted: halted.drifted } }),
    replacements: replacements.slice(-mostReplacements).map((each) => ({
      claim: each.claim,
      since: rfc3339(each.sinceMs),
      ...(each.initializedMs !== undefined && { initialized: rfc3339(each.initializedMs) }),
      ...(each.owners.length > 0 && { owners: each.owners.slice(0, mostOwners) }),
      ...(each.unhealthy !== undefined && { unhealthy: each.unhealthy }),
      ...(each.isHealthy && { healthy: true }),
    })),
  })
}

/** @returns undefined if the text is not from {@link recordText}: somebody has changed it. */
export function readRecord(text: string): RolloutRecord | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  const fields = fieldsOf(parsed)
  const replacements = fields?.get('replacements')
  const of = fields?.get('of')
  if (fields === undefined || typeof of !== 'string' || !Array.isArray(replacements)) return undefined
  const halted = fieldsOf(fields.get('halted'))
  const atMs = timeOf(halted?.get('at'))
  const read = replacements.map(watchedOf)
  const known = read.filter((each) => each !== undefined)
  if (known.length < read.length) return undefined
  return {
    of,
    replacements: known,
    hasPassed: fields.get('passed') === true,
    ...(halted !== undefined && {
      halted: { atMs: atMs ?? 0, drifted: String(halted.get('drifted') ?? '') },
    }),
  }
}

function watchedOf(given: unknown): Watched | undefined {
  const fields = fieldsOf(given)
  const claim = fields?.get('claim')
  const sinceMs = timeOf(fields?.get('since'))
  if (fields === undefined || typeof claim !== 'string' || sinceMs === undefined) return undefined
  const initializedMs = timeOf(fields.get('initialized'))
  const owners = fields.get('owners') ?? []
  const unhealthy = fields.get('unhealthy')
  return {
    claim,
    sinceMs,
    ...(initializedMs !== undefined && { initializedMs }),
    owners: Array.isArray(owners) ? owners.filter((each) => typeof each === 'string') : [],
    ...(typeof unhealthy === 'string' && { unhealthy }),
    ...(fields.get('healthy') === true && { isHealthy: true }),
  }
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return new Map(Object.entries(value))
}

function timeOf(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
