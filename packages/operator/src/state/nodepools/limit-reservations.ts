/** Limits of NodePools and quotas, reserved for claims that are being created (scheduling.md 10, quotas.md 1). */
import { Listeners } from '@tenon/runtime'
import { type NodeClaim, type NodePool, parseResources, type Resources } from '@tenon/api'
import { exceededLimit, exceededQuota, type QuotaInput } from '@tenon/engine'
import type { Cache } from '@tenon/kube'

export interface LimitReservation {
  readonly pool: string
  /** Names of the quotas that count the claim. */
  readonly quotas: readonly string[]
  readonly amounts: Resources
}

export interface ReservationRequest {
  readonly pool: NodePool
  /** Resources of the pool's nodes. */
  readonly usage: Resources
  /** The most that the claim may be launched with. */
  readonly largest: Resources
  /** The quotas that count the claim, with what nodes and visible claims use of them. */
  readonly quotas: readonly QuotaInput[]
}

/** The resource whose limit is exceeded. */
export type Exceeded = { readonly kind: 'limit'; readonly resource: string } | ExceededQuota

export interface ExceededQuota {
  readonly kind: 'quota'
  readonly quota: string
  readonly resource: string
}

/**
 * Keeps two decisions from using the same amount below a limit when both are made before either is carried out. A
 * reservation is taken before a claim is created, and released when its instance counts as usage or will not come. Quotas
 * count a claim itself as soon as it can be seen.
 */
export class LimitReservations {
  readonly #taken = new Set<LimitReservation>()
  readonly #byClaim = new Map<string, LimitReservation>()
  /** Those whose claim cannot be seen yet. */
  readonly #unseen = new Set<LimitReservation>()
  /** Sums of reservations by NodePool and by quota, as thousands of claims may be on their way. */
  readonly #ofPools = new Sums()
  readonly #ofQuotas = new Sums()
  /** NodePools and quotas for whose limits a decision waits. */
  readonly #wanted = new Set<string>()
  /** NodePools and quotas of {@link want} and {@link wantQuota} that may have an amount left now; each once. */
  readonly freed: Listeners<string> = new Listeners()

  constructor(claims: Cache<NodeClaim>) {
    claims.onChange(({ kind, object: { metadata, status } }) => {
      this.see(metadata.name)
      if (kind === 'deleted' || status?.capacity !== undefined) this.forget(metadata.name)
    })
  }

  /** @returns the reservation, or what is exceeded. */
  take({ pool, usage, largest, quotas }: ReservationRequest): LimitReservation | Exceeded {
    const { name } = pool.metadata
    const limits = parseResources(pool.spec.limits)
    const resource = exceededLimit(limits, [usage, this.of(name), largest])
    if (resource !== undefined) return { kind: 'limit', resource }
    const exceeded = this.#exceededQuota(quotas, largest)
    if (exceeded !== undefined) return exceeded
    const reservation = { pool: name, quotas: quotas.map((quota) => quota.name), amounts: largest }
    if (Object.keys(limits).length + quotas.length > 0) this.#add(reservation)
    return reservation
  }

  /** The same for a claim of a static NodePool, which keeps to its own limits in another way. */
  takeOfQuotas(
    pool: string,
    quotas: readonly QuotaInput[],
    largest: Resources,
  ): LimitReservation | ExceededQuota {
    const exceeded = this.#exceededQuota(quotas, largest)
    if (exceeded !== undefined) return exceeded
    const reservation = { pool, quotas: quotas.map(({ name }) => name), amounts: largest }
    this.#add(reservation)
    return reservation
  }

  /** The first quota that has not so much left. */
  #exceededQuota(quotas: readonly QuotaInput[], largest: Resources): ExceededQuota | undefined {
    for (const { limits, name, usage } of quotas) {
      const resource = exceededQuota(limits, [usage, this.ofQuota(name)], largest)
      if (resource !== undefined) return { kind: 'quota', quota: name, resource }
    }
    return undefined
  }

  /** Restores a reservation of another process; it is never released. */
  restore(pool: string, amounts: Resources): void {
    this.#ofPools.add(pool, amounts)
  }

  /** The same of a quota. */
  restoreOfQuota(quota: string, amounts: Resources): void {
    this.#ofQuotas.add(quota, amounts)
  }

  of(pool: string): Resources {
    return this.#ofPools.of(pool)
  }

  /** What claims that cannot be seen yet take of a quota. */
  ofQuota(quota: string): Resources {
    return this.#ofQuotas.of(quota)
  }

  /** The same of all quotas of which they take anything. */
  ofQuotas(): Readonly<Record<string, Resources>> {
    return this.#ofQuotas.all()
  }

  /** Ties the reservation to this claim. */
  follow(reservation: LimitReservation, claim: string): void {
    if (this.#taken.has(reservation)) this.#byClaim.set(claim, reservation)
  }

  reservationOf(claim: string): LimitReservation | undefined {
    return this.#byClaim.get(claim)
  }

  /** The claim can be seen, so that quotas count it from now on. */
  see(claim: string): void {
    const reservation = this.#byClaim.get(claim)
    if (reservation !== undefined) this.#releaseQuotas(reservation)
  }

  giveBack(reservation: LimitReservation): void {
    if (!this.#taken.delete(reservation)) return
    this.#releaseQuotas(reservation)
    this.#ofPools.add(reservation.pool, reservation.amounts, -1)
    for (const name of [reservation.pool, ...reservation.quotas.map(quotaKey)])
      if (this.#wanted.delete(name)) this.freed.notify(name)
  }

  /** Requests {@link freed} when a reservation of the NodePool is released. @returns whether there is any. */
  want(pool: string): boolean {
    const isTaken = this.#ofPools.isAny(pool)
    if (isTaken) this.#wanted.add(pool)
    return isTaken
  }

  /** The same of a quota. */
  wantQuota(quota: string): boolean {
    const isTaken = [...this.#taken].some(({ quotas }) => quotas.includes(quota))
    if (isTaken) this.#wanted.add(quotaKey(quota))
    return isTaken
  }

  /** The claim will not exist, or its instance counts as usage. */
  forget(claim: string): void {
    const reservation = this.#byClaim.get(claim)
    this.#byClaim.delete(claim)
    if (reservation !== undefined) this.giveBack(reservation)
  }

  #add(reservation: LimitReservation): void {
    this.#taken.add(reservation)
    this.#ofPools.add(reservation.pool, reservation.amounts)
    if (reservation.quotas.length === 0) return
    this.#unseen.add(reservation)
    for (const quota of reservation.quotas) this.#ofQuotas.add(quota, reservation.amounts)
  }

  #releaseQuotas(reservation: LimitReservation): void {
    if (!this.#unseen.delete(reservation)) return
    for (const quota of reservation.quotas) this.#ofQuotas.add(quota, reservation.amounts, -1)
  }
}

/** NodePools and quotas may have the same name. */
const quotaKey = (quota: string): string => `quota ${quota}`

class Sums {
  readonly #amounts = new Map<string, Map<string, number>>()

  add(name: string, amounts: Resources, times: 1 | -1 = 1): void {
    const total = this.#amounts.get(name) ?? new Map<string, number>()
    this.#amounts.set(name, total)
    for (const [resource, amount] of Object.entries(amounts))
      total.set(resource, (total.get(resource) ?? 0) + times * amount)
  }

  of(name: string): Resources {
    return Object.fromEntries(this.#amounts.get(name) ?? [])
  }

  all(): Readonly<Record<string, Resources>> {
    const names = [...this.#amounts.keys()].filter((name) => this.isAny(name))
    return Object.fromEntries(names.map((name) => [name, this.of(name)]))
  }

  isAny(name: string): boolean {
    return [...(this.#amounts.get(name)?.values() ?? [])].some((amount) => amount > 0)
  }
}
