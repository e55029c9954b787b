/** How carefully drifted nodes of a NodePool are replaced, as its annotations say (ask.md 9). */
import { type NodePool, ownValue, parseDuration } from '@tenon/api'
import type { PoolProblem } from './pool-contradictions.ts'

export const rolloutAnnotations = {
  canary: 'tenon.sh/rollout-canary',
  watch: 'tenon.sh/rollout-watch',
  maxUnhealthy: 'tenon.sh/rollout-max-unhealthy',
  /** A pause of the rollout alone; takes what `tenon.sh/paused` takes. */
  paused: 'tenon.sh/rollout-paused',
  /** Written by the controller: what became of the replacements. Without it the rollout begins anew. */
  state: 'tenon.sh/rollout-state',
  /** Written by the controller: earlier templates, the last one first. */
  history: 'tenon.sh/rollout-history',
} as const

/** A number of nodes, or a share of the NodePool's. */
type Amount = { readonly nodes: number } | { readonly percent: number }

export interface RolloutSettings {
  /** Replacements that are made first, and watched before any other is made. */
  readonly canary: Amount
  /** How long a replacement must stay Ready; milliseconds. */
  readonly watchMs: number
  /** With more unhealthy replacements the rollout halts. */
  readonly maxUnhealthy: number
}

export type SettingsReading =
  /** Drifted nodes are replaced as budgets allow. */
  | { readonly kind: 'none' }
  | { readonly kind: 'careful'; readonly settings: RolloutSettings }
  /** No drifted node is replaced until they are fixed. */
  | { readonly kind: 'invalid'; readonly problems: readonly PoolProblem[] }

const defaults = { watchMs: 10 * 60_000, maxUnhealthy: 0 } as const

/** Reads the annotations; without `tenon.sh/rollout-canary` the others have no effect. */
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

/** How many replacements are made first in a NodePool of this size; at least one. */
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
