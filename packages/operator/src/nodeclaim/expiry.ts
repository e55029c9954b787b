/** When NodeClaims expire, and what happens then (lifecycle.md 5). */
import { type NodeClaim, parseNillableDuration } from '@tenon/api'
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
  const ageMs = afterMs * (1 - expirationJitter * shareOf(metadata.name))
  const atMs = Number.isFinite(ageMs)
    ? Date.parse(metadata.creationTimestamp ?? '') + ageMs
    : Number.POSITIVE_INFINITY
  return { atMs, forcedMs: expiration === undefined ? atMs : atMs + expirationDeadline }
}

/** A number from 0 to 1 that is the same for the same name, and evenly distributed over names (FNV-1a, mixed). */
function shareOf(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0xffffffff
}
