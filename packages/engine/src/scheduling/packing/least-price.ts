/** A bound from below on what claims at known prices cost, found without planning anything. */
import type { ClaimClass } from '../claims/claim-class.ts'
import type { ClaimFinisher } from '../claims/finished-claims.ts'
import type { OpenClaim } from '../claims/open-claims.ts'

export class LeastPrice {
  readonly #finisher: ClaimFinisher
  /** By class, for each resource: what one unit of it costs per hour where it is cheapest. */
  readonly #units = new Map<ClaimClass, Float64Array>()

  constructor(finisher: ClaimFinisher) {
    this.#finisher = finisher
  }

  /** What the pods of the claims cost per hour at least, however they are shared out among new claims. */
  of(claims: readonly OpenClaim[]): number {
    let sum = 0
    for (const [ofClass, members] of Map.groupBy(claims, (claim) => claim.class)) {
      // What is reserved is paid for already.
      if (ofClass.hasReservations) continue
      const units = this.#unitsOf(ofClass)
      let least = 0
      for (let i = 0; i < units.length; i++) {
        let amount = 0
        for (const { amounts } of members) amount += amounts[i] as number
        least = Math.max(least, amount * (units[i] as number))
      }
      sum += least
    }
    return sum
  }

  #unitsOf(ofClass: ClaimClass): Float64Array {
    let units = this.#units.get(ofClass)
    if (units === undefined) {
      const priced = this.#finisher.priced(ofClass)
      units = new Float64Array(priced[0]?.row.room.length ?? 0).map((_, i) => cheapestUnit(priced, i))
      this.#units.set(ofClass, units)
    }
    return units
  }
}

/** 0 where no type has any of the resource, so that nothing is concluded from it. */
function cheapestUnit(priced: ReturnType<ClaimFinisher['priced']>, resource: number): number {
  let least = Number.POSITIVE_INFINITY
  for (const { row, pricePerHour } of priced) {
    const room = row.room[resource] as number
    if (room > 0 && pricePerHour !== undefined) least = Math.min(least, pricePerHour / room)
  }
  return Number.isFinite(least) ? least : 0
}
