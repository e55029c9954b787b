/** Claims of each NodePool, and names reserved for more (cluster-state.md 11). */
import { isConditionTrue, labels, type NodeClaim } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { indexes } from '../caches.ts'

/** Claims of one NodePool, each in exactly one list, by name. */
export interface ClaimsOfPool {
  readonly active: readonly NodeClaim[]
  readonly deleting: readonly NodeClaim[]
  /** Chosen for disruption, while their replacements do not exist yet. */
  readonly pendingDisruption: readonly NodeClaim[]
}

/** What the cluster state knows about claims beside the cache. */
export interface ClaimSources {
  /** Claims created by this process that the cache does not show yet. */
  readonly unseen: () => Iterable<NodeClaim>
  /** Whether the claim counts: this provider serves it, or it is invalid. */
  readonly isManaged: (claim: NodeClaim) => boolean
  /** Whether the claim is being deleted, or its instance is marked for deletion. */
  readonly isLeaving: (claim: NodeClaim) => boolean
}

interface Hold {
  readonly pool: string
  /** Since when it is unknown whether the claim exists; undefined while it is being created. */
  readonly unsettledSinceMs?: number
}

/**
 * Counts claims by NodePool and enforces a limit on their number. Slots are reserved by claim name: an existing claim and
 * a reserved name count once, in whatever order creation, cache and release happen, so that no slot is lost or used twice.
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

  /** Number of claims of the pool, including deleting ones, and of reserved names. */
  occupied(pool: string): number {
    const names = new Set(this.#claimsOf(pool).map(({ metadata }) => metadata.name))
    for (const [name, hold] of this.#held) if (hold.pool === pool) names.add(name)
    return names.size
  }

  /**
   * Reserves as many of `names` as the limit allows.
   * @returns the reserved names; the caller must {@link release} each after creating it, or instead.
   */
  reserve(pool: string, limit: number, names: readonly string[]): readonly string[] {
    const free = Math.max(0, Math.floor(limit - this.occupied(pool)))
    const granted = names.slice(0, free)
    for (const name of granted) this.#held.set(name, { pool })
    return granted
  }

  release(...names: readonly string[]): void {
    for (const name of names) this.#held.delete(name)
  }

  /** Keeps a name whose creation had no clear result: the claim may exist, or still appear. */
  leaveUnsettled(name: string, nowMs: number): void {
    const hold = this.#held.get(name)
    if (hold !== undefined) this.#held.set(name, { ...hold, unsettledSinceMs: nowMs })
  }

  /**
   * Names to create again, or to look up and release.
   * @param beforeMs only those left before.
   */
  unsettled(pool: string, beforeMs: number = Number.POSITIVE_INFINITY): readonly string[] {
    return [...this.#held].flatMap(([name, hold]) =>
      hold.pool === pool && hold.unsettledSinceMs !== undefined && hold.unsettledSinceMs < beforeMs
        ? [name]
        : [],
    )
  }

  /** Names of NodePools with claims that may or may not exist. */
  unsettledPools(): readonly string[] {
    const unsettled = [...this.#held.values()].filter(
      ({ unsettledSinceMs }) => unsettledSinceMs !== undefined,
    )
    return [...new Set(unsettled.map(({ pool }) => pool))]
  }

  /** The API server has accepted the deletion of a claim. */
  markDeleting(name: string): void {
    if (this.#knows(name)) this.#deleting.add(name)
  }

  markPendingDisruption(name: string): void {
    if (this.#knows(name)) this.#pending.add(name)
  }

  /** Removes marks; only the claim's object counts from now on. */
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

/** Whether the disruption loop has cancelled its command for the claim. */
function isReprieve(before: NodeClaim, after: NodeClaim): boolean {
  return isConditionTrue(before, 'DisruptionReason') && !isConditionTrue(after, 'DisruptionReason')
}
