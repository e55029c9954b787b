/** The claims of each NodePool, and the names set aside for more of them (cluster-state.md 11). */
import { isConditionTrue, labels, type NodeClaim } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { indexes } from '../caches.ts'

/** The claims of one NodePool; each is in one of the lists, in order of name. */
export interface ClaimsOfPool {
  readonly active: readonly NodeClaim[]
  readonly deleting: readonly NodeClaim[]
  /** Chosen by the disruption loop, while their replacements do not exist yet. */
  readonly pendingDisruption: readonly NodeClaim[]
}

/** What is known of claims beside the cache. */
export interface ClaimSources {
  /** Claims created by this process that no cache has shown yet. */
  readonly unseen: () => Iterable<NodeClaim>
  /** Whether the claim counts: this provider serves it, or it cannot be read. */
  readonly isManaged: (claim: NodeClaim) => boolean
  /** Whether the claim is being deleted, or its instance is marked for deletion. */
  readonly isLeaving: (claim: NodeClaim) => boolean
}

interface Hold {
  readonly pool: string
  /** Since when it is not known whether the claim exists; absent while it is being created. */
  readonly unsettledSinceMs?: number
}

/**
 * Counts claims by NodePool and keeps a limit on their number. Room is set aside by the names of the
 * claims to come: a claim that exists and a name that is held are one, however creation, caches and
 * release follow each other, so that room is neither lost nor given twice.
 */
export class PoolClaims {
  readonly #claims: Cache<NodeClaim>
  readonly #sources: ClaimSources
  readonly #pending = new Set<string>()
  /** Claims whose deletion was accepted, which the cache may not show yet. */
  readonly #deleting = new Set<string>()
  readonly #held = new Map<string, Hold>()

  constructor(claims: Cache<NodeClaim>, sources: ClaimSources) {
    this.#claims = claims
    this.#sources = sources
    claims.onChange((change) => {
      const { name } = change.object.metadata
      this.#held.delete(name)
      if (change.kind === 'updated' && isReprieve(change.old, change.object)) this.#pending.delete(name)
    })
  }

  of(pool: string): ClaimsOfPool {
    const active: NodeClaim[] = []
    const deleting: NodeClaim[] = []
    const pendingDisruption: NodeClaim[] = []
    for (const claim of this.#claimsOf(pool)) {
      const { name } = claim.metadata
      if (this.#deleting.has(name) || this.#sources.isLeaving(claim)) deleting.push(claim)
      else if (this.#pending.has(name)) pendingDisruption.push(claim)
      else active.push(claim)
    }
    return { active, deleting, pendingDisruption }
  }

  /** Claims of the pool, whatever becomes of them, and names held for more. */
  occupied(pool: string): number {
    const names = new Set(this.#claimsOf(pool).map(({ metadata }) => metadata.name))
    for (const [name, hold] of this.#held) if (hold.pool === pool) names.add(name)
    return names.size
  }

  /**
   * Holds as many of `names` as the limit has room for.
   * @returns the names held; each is to be created and released, or released.
   */
  reserve(pool: string, limit: number, names: readonly string[]): readonly string[] {
    const free = Math.max(0, Math.floor(limit - this.occupied(pool)))
    const granted = names.slice(0, free)
    for (const name of granted) this.#held.set(name, { pool })
    return granted
  }

  /** Gives names up that are held; others are passed over. */
  release(...names: readonly string[]): void {
    for (const name of names) this.#held.delete(name)
  }

  /** Keeps a name whose creation had no clear answer: the claim may exist, or may come to. */
  leaveUnsettled(name: string, nowMs: number): void {
    const hold = this.#held.get(name)
    if (hold !== undefined) this.#held.set(name, { ...hold, unsettledSinceMs: nowMs })
  }

  /**
   * Names to create once more, or to look up and release.
   * @param beforeMs only those that were left before.
   */
  unsettled(pool: string, beforeMs: number = Number.POSITIVE_INFINITY): readonly string[] {
    return [...this.#held].flatMap(([name, hold]) =>
      hold.pool === pool && hold.unsettledSinceMs !== undefined && hold.unsettledSinceMs < beforeMs
        ? [name]
        : [],
    )
  }

  /** Names of the pools with claims of which it is not known whether they exist. */
  unsettledPools(): readonly string[] {
    const unsettled = [...this.#held.values()].filter(
      ({ unsettledSinceMs }) => unsettledSinceMs !== undefined,
    )
    return [...new Set(unsettled.map(({ pool }) => pool))]
  }

  /** The API server has accepted the deletion of a claim. One that is gone already is passed over. */
  markDeleting(name: string): void {
    if (this.#knows(name)) this.#deleting.add(name)
  }

  markPendingDisruption(name: string): void {
    if (this.#knows(name)) this.#pending.add(name)
  }

  /** Takes back what was noted about a claim; from here on only what its objects say counts. */
  unmark(name: string): void {
    this.#pending.delete(name)
    this.#deleting.delete(name)
  }

  #knows(name: string): boolean {
    return (
      this.#claims.get({ name }) !== undefined ||
      [...this.#sources.unseen()].some(({ metadata }) => metadata.name === name)
    )
  }

  #claimsOf(pool: string): readonly NodeClaim[] {
    const { isManaged, unseen } = this.#sources
    const byName = new Map<string, NodeClaim>()
    for (const claim of unseen())
      if (claim.metadata.labels?.[labels.nodePool] === pool) byName.set(claim.metadata.name, claim)
    for (const claim of this.#claims.byIndex(indexes.byNodePool, pool)) byName.set(claim.metadata.name, claim)
    return [...byName.values()]
      .filter(isManaged)
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }
}

/** Whether the disruption loop has taken back what it had decided about a claim. */
function isReprieve(before: NodeClaim, after: NodeClaim): boolean {
  return isConditionTrue(before, 'DisruptionReason') && !isConditionTrue(after, 'DisruptionReason')
}
