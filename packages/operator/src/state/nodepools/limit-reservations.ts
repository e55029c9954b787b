/** Limits of NodePools, reserved for claims that are being created (scheduling.md 10). */
import { Listeners } from '@tenon/runtime'
import { type NodeClaim, type NodePool, parseResources, type Resources } from '@tenon/api'
import { exceededLimit } from '@tenon/engine'
import type { Cache } from '@tenon/kube'

export interface LimitReservation {
  readonly pool: string
  readonly amounts: Resources
}

export interface ReservationRequest {
  readonly pool: NodePool
  /** Resources of the pool's nodes. */
  readonly usage: Resources
  /** The most that the claim may be launched with. */
  readonly largest: Resources
}

/**
 * Keeps two decisions from using the same amount below a limit when both are made before either is carried out. A
 * reservation is taken before a claim is created, and released when its instance counts as usage or will not come.
 */
export class LimitReservations {
  readonly #taken = new Set<LimitReservation>()
  readonly #byClaim = new Map<string, LimitReservation>()
  /** Sum of reservations by NodePool, as thousands of claims may be on their way. */
  readonly #totals = new Map<string, Map<string, number>>()
  /** NodePools for whose limits a decision waits. */
  readonly #wanted = new Set<string>()
  /** NodePools of {@link want} that may have an amount left now; each once. */
  readonly freed: Listeners<string> = new Listeners()

  constructor(claims: Cache<NodeClaim>) {
    claims.onChange(({ kind, object: { metadata, status } }) => {
      if (kind === 'deleted' || status?.capacity !== undefined) this.forget(metadata.name)
    })
  }

  /** @returns the reservation, or the resource whose limit is exceeded. */
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

  /** Restores a reservation of another process; it is never released. */
  restore(pool: string, amounts: Resources): void {
    this.#count({ pool, amounts }, 1)
  }

  of(pool: string): Resources {
    return Object.fromEntries(this.#totals.get(pool) ?? [])
  }

  /** Ties the reservation to this claim. */
  follow(reservation: LimitReservation, claim: string): void {
    if (this.#taken.has(reservation)) this.#byClaim.set(claim, reservation)
  }

  giveBack(reservation: LimitReservation): void {
    if (!this.#taken.delete(reservation)) return
    this.#count(reservation, -1)
    if (this.#wanted.delete(reservation.pool)) this.freed.notify(reservation.pool)
  }

  /** Requests {@link freed} when a reservation of the NodePool is released. @returns whether there is any. */
  want(pool: string): boolean {
    const isTaken = [...(this.#totals.get(pool)?.values() ?? [])].some((amount) => amount > 0)
    if (isTaken) this.#wanted.add(pool)
    return isTaken
  }

  /** The claim will not exist, or its instance counts as usage. */
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
