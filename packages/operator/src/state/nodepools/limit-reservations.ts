/** What nodes on their way take of the limits of NodePools (scheduling.md 10). */
import { Listeners } from '@tenon/runtime'
import { type NodeClaim, type NodePool, parseResources, type Resources } from '@tenon/api'
import { exceededLimit } from '@tenon/engine'
import type { Cache } from '@tenon/kube'

/** What one claim to come takes of its NodePool's limits. */
export interface LimitReservation {
  readonly pool: string
  readonly amounts: Resources
}

/** What a claim to come takes, and what is there. */
export interface ReservationRequest {
  readonly pool: NodePool
  /** What the pool's nodes have that count. */
  readonly usage: Resources
  /** What the claim may be launched as, at most. */
  readonly largest: Resources
}

/**
 * Keeps two decisions from using the same amount below a limit, as both were made before either was carried out. A
 * reservation is made before a claim is created, and given back once its instance counts or will not come.
 */
export class LimitReservations {
  readonly #taken = new Set<LimitReservation>()
  readonly #byClaim = new Map<string, LimitReservation>()
  /** By NodePool the sum of its reservations: thousands of claims may be on their way. */
  readonly #totals = new Map<string, Map<string, number>>()
  /** NodePools that somebody waits for. */
  readonly #wanted = new Set<string>()
  /** NodePools that somebody waited for and that may have an amount left now; each is told of once. */
  readonly freed: Listeners<string> = new Listeners()

  constructor(claims: Cache<NodeClaim>) {
    claims.onChange(({ kind, object: { metadata, status } }) => {
      if (kind === 'deleted' || status?.capacity !== undefined) this.forget(metadata.name)
    })
  }

  /** @returns the reservation, or the resource whose limit does not allow it; nothing is reserved then. */
  take({ pool, usage, largest }: ReservationRequest): LimitReservation | string {
    const { name } = pool.metadata
    const limits = parseResources(pool.spec.limits)
    const exceeded = exceededLimit(limits, [usage, this.of(name), largest])
    if (exceeded !== undefined) return exceeded
    const reservation: LimitReservation = { pool: name, amounts: largest }
    if (Object.keys(limits).length > 0) {
      this.#taken.add(reservation)
      this.#count(reservation, 1)
    }
    return reservation
  }

  /** Takes over what another process had reserved; it is never given back. */
  restore(pool: string, amounts: Resources): void {
    this.#count({ pool, amounts }, 1)
  }

  /** What is reserved of the limits of a NodePool. */
  of(pool: string): Resources {
    return Object.fromEntries(this.#totals.get(pool) ?? [])
  }

  /** From now on the reservation belongs to this claim. */
  follow(reservation: LimitReservation, claim: string): void {
    if (this.#taken.has(reservation)) this.#byClaim.set(claim, reservation)
  }

  giveBack(reservation: LimitReservation): void {
    if (!this.#taken.delete(reservation)) return
    this.#count(reservation, -1)
    if (this.#wanted.delete(reservation.pool)) this.freed.notify(reservation.pool)
  }

  /** Asks to be told when a reservation of the NodePool is given back; answers whether there is any. */
  want(pool: string): boolean {
    const isTaken = [...(this.#totals.get(pool)?.values() ?? [])].some((amount) => amount > 0)
    if (isTaken) this.#wanted.add(pool)
    return isTaken
  }

  /** There will be no such claim, or its instance counts by itself. */
  forget(claim: string): void {
    const reservation = this.#byClaim.get(claim)
    this.#byClaim.delete(claim)
    if (reservation !== undefined) this.giveBack(reservation)
  }

  #count({ pool, amounts }: LimitReservation, times: 1 | -1): void {
    const total = this.#totals.get(pool) ?? new Map<string, number>()
    this.#totals.set(pool, total)
    for (const [name, amount] of Object.entries(amounts))
      total.set(name, (total.get(name) ?? 0) + times * amount)
  }
}
