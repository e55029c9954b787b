/** A lower bound for the price of claims, without planning them. */
import { addTo } from '../pods/resource-space.ts'
import type { ClaimClass } from '../claims/claim-class.ts'
import type { ClaimFinisher } from '../claims/finished-claims.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import { undominated } from './packing.ts'
import { type Bin, resourcePrices } from './resource-prices.ts'

/** Relative rounding error of a sum of many products. */
const rounding = 1e-6

export class LeastPrice {
  readonly #finisher: ClaimFinisher
  /** By class: the lowest price per hour of one unit of each resource. */
  readonly #units = new Map<ClaimClass, Float64Array>()
  readonly #bins = new Map<ClaimClass, readonly Bin[]>()

  constructor(finisher: ClaimFinisher) {
    this.#finisher = finisher
  }

  /**
   * Whether the pods of the claims cost more than `most` per hour, however they are distributed over new claims.
   */
  exceeds(most: number, claims: readonly OpenClaim[]): boolean {
    const demands = Array.from(
      Map.groupBy(claims, (claim) => claim.class),
      ([ofClass, members]) => ({ ofClass, demand: sumOf(members) }),
      // Reserved capacity is paid for already.
    ).filter(({ ofClass }) => !ofClass.hasReservations)
    const dearest = demands.reduce((sum, { ofClass, demand }) => sum + this.#dearest(ofClass, demand), 0)
    if (dearest > most) return true
    const together = demands.reduce((sum, { ofClass, demand }) => sum + this.#together(ofClass, demand), 0)
    return together > most * (1 + rounding)
  }

  /** The bound by one resource alone: that with the highest price. */
  #dearest(ofClass: ClaimClass, demand: Float64Array): number {
    const units = this.#unitsOf(ofClass)
    return demand.reduce((least, amount, i) => Math.max(least, amount * (units[i] as number)), 0)
  }

  /** The bound by all resources, if nodes could be bought in parts. */
  #together(ofClass: ClaimClass, demand: Float64Array): number {
    const { prices } = resourcePrices(this.#binsOf(ofClass), demand)
    return demand.reduce((sum, amount, i) => sum + amount * (prices[i] as number), 0)
  }

  #binsOf(ofClass: ClaimClass): readonly Bin[] {
    let bins = this.#bins.get(ofClass)
    if (bins === undefined) {
      const all = this.#finisher
        .priced(ofClass)
        .flatMap(({ row: { room }, pricePerHour }) =>
          pricePerHour === undefined ? [] : [{ room, pricePerHour }],
        )
      bins = undominated(all).flatMap((index) => all[index] ?? [])
      this.#bins.set(ofClass, bins)
    }
    return bins
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

function sumOf(claims: readonly OpenClaim[]): Float64Array {
  const sum = new Float64Array(claims[0]?.amounts.length ?? 0)
  for (const { amounts } of claims) addTo(sum, amounts)
  return sum
}

/** 0 if no type has any of the resource, so that nothing follows from it. */
function cheapestUnit(priced: ReturnType<ClaimFinisher['priced']>, resource: number): number {
  let least = Number.POSITIVE_INFINITY
  for (const { row, pricePerHour } of priced) {
    const room = row.room[resource] as number
    if (room > 0 && pricePerHour !== undefined) least = Math.min(least, pricePerHour / room)
  }
  return Number.isFinite(least) ? least : 0
}
