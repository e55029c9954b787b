import { type InstanceType, ownValue, type Resources } from '@tenon/api'
import { allocatableOf, type PoolInput } from '@tenon/engine'

/** Instance types by what they hold, whether or not a NodePool allows them. */
export class TypesThatHold {
  /** Cheapest first. */
  readonly #types: readonly { readonly name: string; readonly allocatable: Resources }[]
  readonly #known = new Map<string, readonly string[]>()
  readonly #groups = new Map<string, number>()

  constructor(pools: readonly PoolInput[]) {
    const types = new Map(
      pools.flatMap(({ instanceTypes }) => instanceTypes.map((type) => [type.name, type])),
    )
    this.#types = [...types.values()]
      .map((type) => ({ name: type.name, price: cheapest(type), allocatable: allocatableOf(type) }))
      .toSorted((a, b) => a.price - b.price || (a.name < b.name ? -1 : 1))
  }

  /** The same number for all requests that the same types hold. */
  groupOf(requests: Resources): number {
    const names = this.namesFor(requests).join(' ')
    const group = this.#groups.get(names) ?? this.#groups.size
    this.#groups.set(names, group)
    return group
  }

  /** Names of the types that hold the requests, cheapest first; those of unknown price last. */
  namesFor(requests: Resources): readonly string[] {
    const key = JSON.stringify(requests)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const names = this.#types
      .filter(({ allocatable }) =>
        Object.entries(requests).every(([name, amount]) => amount <= (ownValue(allocatable, name) ?? 0)),
      )
      .map(({ name }) => name)
    this.#known.set(key, names)
    return names
  }
}

/** Infinity sorts types without a known price last. */
function cheapest({ offerings }: InstanceType): number {
  return Math.min(Number.POSITIVE_INFINITY, ...offerings.flatMap(({ pricePerHour }) => pricePerHour ?? []))
}
