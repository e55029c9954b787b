/** When NodeClaims expire, and what happens then (lifecycle.md 5). */
import { type NodeClaim, parseNillableDuration } from '@tenon/api'
import { SeededRandom, unit } from '@tenon/runtime'
import type { PoolWishes } from '../state/nodepools/pool-annotations.ts'

interface Expiry {
  /** When the claim expires, Unix milliseconds; Infinity for never. */
  readonly atMs: number
  /** When it is deleted whatever becomes of its pods; Infinity for never. */
  readonly forcedMs: number
}

export function expiryOf({ metadata, spec }: NodeClaim, wishes: PoolWishes): Expiry {
  const { expiration, expirationDeadline = Number.POSITIVE_INFINITY, expirationJitter = 0 } = wishes
  const afterMs = parseNillableDuration(spec.expireAfter) ?? Number.POSITIVE_INFINITY
  // The same after a restart, and different for claims of one birthday.
  const ageMs = afterMs * (1 - expirationJitter * unit(new SeededRandom(metadata.name)))
  const atMs = Number.isFinite(ageMs)
    ? Date.parse(metadata.creationTimestamp ?? '') + ageMs
    : Number.POSITIVE_INFINITY
  return { atMs, forcedMs: expiration === undefined ? atMs : atMs + expirationDeadline }
}
