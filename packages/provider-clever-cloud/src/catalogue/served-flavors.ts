/** The flavors that are offered (clever-cloud.md 5.3). */
import type { PricePerHour } from '@tenon/api'
import { builtInFlavors, type FlavorSize } from './flavors.ts'
import type { FlavorOverrides } from './overrides.ts'
import { listedPrice, type PriceUnit, relativePrice } from './prices.ts'

/** A flavor with its price in the common unit. */
export interface ServedFlavor extends FlavorSize {
  /** Undefined in a catalogue in euros for a flavor without a price there. */
  readonly pricePerHour: PricePerHour
}

/** All offered flavors, in the order that decides ties, and the unit of their prices. */
export interface ServedFlavors {
  readonly flavors: readonly ServedFlavor[]
  readonly priceUnit: PriceUnit
}

/** //A price of 1 is that of the smallest built-in flavor, whatever the file says about it. */
const [priced] = builtInFlavors

/**
 * The built-in flavors with the changes of the file, then the flavors that the file adds, in its order. Listing one
 * flavor does not remove others. Early documents of the upstream project say that a list replaces the built-in flavors,
 * but its later versions behave as here: otherwise a file that corrects one price would make all nodes of other flavors
 * drift. To use fewer flavors, restrict the NodePool, where it is visible.
 */
export function servedFlavors(overrides: FlavorOverrides): ServedFlavors {
  const byName = new Map(overrides.map((override) => [override.name, override]))
  const sizes = new Map(builtInFlavors.map((size) => [size.name, size]))
  for (const { name, cpu = sizes.get(name)?.cpu, memoryKi = sizes.get(name)?.memoryKi } of overrides)
    if (cpu !== undefined && memoryKi !== undefined) sizes.set(name, { name, cpu, memoryKi })
  const isInEuros = overrides.some(({ pricePerHour }) => pricePerHour !== undefined)
  const priceOf = (size: FlavorSize): PricePerHour =>
    isInEuros
      ? (byName.get(size.name)?.pricePerHour ?? listedPrice(size.name))
      : priced && relativePrice(size, priced)
  return {
    flavors: [...sizes.values()].map((size) => ({ ...size, pricePerHour: priceOf(size) })),
    priceUnit: isInEuros ? 'EUR' : '2XS-equivalents',
  }
}
