/** What the instance types of a claim may cost once it is launched (disruption.md 9, 10). */
import {
  capacityTypes,
  comparePrices,
  fits,
  lowestPrice,
  type PricePerHour,
  type Resources,
} from '@tenon/api'
import { highestPrice } from '../scheduling/types/allocatable.ts'
import type { CompiledProblem } from '../scheduling/compiled-problem.ts'
import type { FinishedClaim } from '../scheduling/claims/finished-claims.ts'
import type { CompiledType, Sale } from '../scheduling/types/instance-rows.ts'
import { compatible, type Requirements } from '../requirements/requirements.ts'

/** A type of a claim with the prices, per hour, of the offerings that the claim allows. */
export interface LaunchPrice {
  readonly name: string
  readonly type: CompiledType
  /** The lowest known price; undefined when no allowed offering has a known price. */
  readonly cheapest: PricePerHour
  /**
   * The most a launch may cost: reserved capacity is used first, then spot, then on-demand. Undefined when it
   * may use an offering of unknown price, or none.
   */
  readonly worst: PricePerHour
}

const launchOrder: readonly string[] = [capacityTypes.reserved, capacityTypes.spot, capacityTypes.onDemand]

export class LaunchPrices {
  readonly #compiled: CompiledProblem
  readonly #types = new Map<string, ReadonlyMap<string, CompiledType>>()

  constructor(compiled: CompiledProblem) {
    this.#compiled = compiled
  }

  /** The types that a claim lists, cheapest first, those that cannot be launched last. */
  of(
    { nodePool, instanceTypes, requests }: FinishedClaim,
    requirements: Requirements,
  ): readonly LaunchPrice[] {
    const types = this.#typesOf(nodePool)
    const open = new Map<Sale, readonly number[]>()
    const openOf = (sale: Sale) => {
      let indexes = open.get(sale)
      if (indexes === undefined) {
        indexes = [...sale.terms.keys()].filter((index) =>
          compatible(
            requirements,
            sale.terms[index]?.requirements ?? new Map(),
            this.#compiled.problem.policy.wellKnownLabels,
          ),
        )
        open.set(sale, indexes)
      }
      return indexes
    }
    return instanceTypes
      .flatMap((name) => {
        const type = types.get(name)
        return type === undefined ? [] : [{ name, type, ...pricesOf(type, requests, openOf) }]
      })
      .toSorted((a, b) => comparePrices(a.cheapest, b.cheapest))
  }

  #typesOf(nodePool: string): ReadonlyMap<string, CompiledType> {
    let types = this.#types.get(nodePool)
    if (types === undefined) {
      const template = this.#compiled.templates.find(({ name }) => name === nodePool)
      types = new Map((template?.rows ?? []).map(({ type }) => [type.type.name, type]))
      this.#types.set(nodePool, types)
    }
    return types
  }
}

function pricesOf(
  { groups }: CompiledType,
  requests: Resources,
  openOf: (sale: Sale) => readonly number[],
): Pick<LaunchPrice, 'cheapest' | 'worst'> {
  let cheapest: PricePerHour
  const sold = new Map<string, PricePerHour[]>()
  for (const { offerings, sale, allocatable } of groups) {
    // Overrides of offerings may leave less for pods than the type.
    if (groups.length > 1 && !fits(requests, allocatable)) continue
    for (const index of openOf(sale)) {
      const { pricePerHour, capacityType = '' } = offerings[index] ?? {}
      cheapest = lowestPrice([cheapest, pricePerHour])
      const prices = sold.get(capacityType)
      if (prices === undefined) sold.set(capacityType, [pricePerHour])
      else prices.push(pricePerHour)
    }
  }
  const first = launchOrder.find((capacityType) => sold.has(capacityType))
  return { cheapest, worst: first === undefined ? undefined : highestPrice(sold.get(first) ?? []) }
}
