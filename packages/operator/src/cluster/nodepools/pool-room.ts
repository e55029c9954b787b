/** Room below the limits of NodePools that is taken by machines on their way (scheduling.md 10). */
import { Listeners } from '@tenon/runtime'
import { type NodeClaim, type NodePool, parseResources, type Resources, ownValue } from '@tenon/api'
import type { Cache } from '@tenon/kube'

/** Room of one claim to come. */
export interface TakenRoom {
  readonly pool: string
  readonly amounts: Resources
}

/** What a claim to come takes, and what is there. */
export interface RoomAsked {
  readonly pool: NodePool
  /** What the pool's machines have that count. */
  readonly usage: Resources
  /** What the claim may be launched as, at most. */
  readonly largest: Resources
}

/**
 * Keeps two decisions from taking the same room, as both were made before either was carried out. Room is taken
 * before a claim is created, and given back once its machine counts, or will not come.
 */
export class PoolRoom {
  readonly #taken = new Set<TakenRoom>()
  readonly #byClaim = new Map<string, TakenRoom>()
  /** By NodePool what is taken of it together: thousands of claims may be on their way. */
  readonly #totals = new Map<string, Map<string, number>>()
  /** NodePools that somebody wants room of. */
  readonly #wanted = new Set<string>()
  /** NodePools with room that was wanted and may be there now; each is told of once. */
  readonly freed: Listeners<string> = new Listeners()

  constructor(claims: Cache<NodeClaim>) {
    claims.onChange(({ kind, object: { metadata, status } }) => {
      if (kind === 'deleted' || status?.capacity !== undefined) this.forget(metadata.name)
    })
  }

  /** @returns the amount whose limit has no room for it; nothing is taken then. */
  take({ pool, usage, largest }: RoomAsked): TakenRoom | string {
    const { name } = pool.metadata
    const limits = Object.entries(parseResources(pool.spec.limits))
    const total = this.#totals.get(name)
    const amountWith = (amount: string) =>
      (ownValue(usage, amount) ?? 0) + (total?.get(amount) ?? 0) + (ownValue(largest, amount) ?? 0)
    const exceeded = limits.find(([amount, limit]) => amountWith(amount) > limit)
    if (exceeded !== undefined) return exceeded[0]
    const room: TakenRoom = { pool: name, amounts: largest }
    if (limits.length > 0) {
      this.#taken.add(room)
      this.#count(room, 1)
    }
    return room
  }

  /** From now on the room follows this claim. */
  follow(room: TakenRoom, claim: string): void {
    if (this.#taken.has(room)) this.#byClaim.set(claim, room)
  }

  giveBack(room: TakenRoom): void {
    if (!this.#taken.delete(room)) return
    this.#count(room, -1)
    if (this.#wanted.delete(room.pool)) this.freed.notify(room.pool)
  }

  /** Asks to be told when room of the NodePool is given back; answers whether any can be. */
  want(pool: string): boolean {
    const isTaken = [...(this.#totals.get(pool)?.values() ?? [])].some((amount) => amount > 0)
    if (isTaken) this.#wanted.add(pool)
    return isTaken
  }

  /** There will be no such claim, or its machine counts by itself. */
  forget(claim: string): void {
    const room = this.#byClaim.get(claim)
    this.#byClaim.delete(claim)
    if (room !== undefined) this.giveBack(room)
  }

  #count({ pool, amounts }: TakenRoom, times: 1 | -1): void {
    const total = this.#totals.get(pool) ?? new Map<string, number>()
    this.#totals.set(pool, total)
    for (const [name, amount] of Object.entries(amounts))
      total.set(name, (total.get(name) ?? 0) + times * amount)
  }
}
