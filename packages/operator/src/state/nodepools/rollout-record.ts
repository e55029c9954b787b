/** What a NodePool remembers of its rollout, in an annotation: a restart goes on from there (ask.md 9). */
import { rfc3339 } from '@tenon/runtime'

/** A node in place of a drifted one. */
export interface Watched {
  /** Name of the NodeClaim. */
  readonly claim: string
  /** When its NodeClaim was created; Unix milliseconds. */
  readonly sinceMs: number
  /** When it was first seen to be initialized; Unix milliseconds. */
  readonly initializedMs?: number
  /** UIDs of the controllers of pods that were Ready on the nodes it replaces. */
  readonly owners: readonly string[]
  /** Why it is unhealthy; absent while it is not known to be. */
  readonly unhealthy?: string
  /** Whether its watch has ended well. */
  readonly isHealthy?: true
}

export interface RolloutRecord {
  /** Generations of NodePool and node class: after another edit the rollout begins anew. */
  readonly of: string
  readonly replacements: readonly Watched[]
  /** Whether the canaries have been watched to the end, so that budgets alone limit the rest. */
  readonly hasPassed: boolean
  /** When and why it was halted. */
  readonly halted?: { readonly atMs: number; readonly drifted: string }
}

/** The most controllers whose pods are followed for one replacement. */
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

/** @returns undefined when the text is none of {@link recordText}: somebody has changed it. */
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
