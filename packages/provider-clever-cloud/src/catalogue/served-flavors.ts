/** The flavors that are offered (clever-cloud.md 5.3). */
import type { PricePerHour } from '@tenon/api'
import { builtInFlavors, type FlavorSize } from './flavors.ts'
import type { FlavorOverrides } from './overrides.ts'
import { listedPrice, type PriceUnit, relativePrice } from './prices.ts'

/** A flavor with its price in the unit of all flavors. */
export interface ServedFlavor extends FlavorSize {
  /** Undefined in a catalogue in euros of a flavor that has no price there. */
  readonly pricePerHour: PricePerHour
}

/** All flavors that are offered, in the order that settles ties, and what their prices are in. */
export interface ServedFlavors {
  readonly flavors: readonly ServedFlavor[]
  readonly priceUnit: PriceUnit
}

/** A price of 1 is that of the smallest flavor as it is built in, whatever a file says of it. */
const [priced] = builtInFlavors

/**
 * The built-in flavors with what the file says of them, then the flavors that the file adds, in its order.
 *
 * A file that lists one flavor does not take the others away. Documents of earlier releases of the upstream project
 * say that a list replaces the built-in flavors, its later behaviour is this: a file that corrects one price would
 * otherwise make all nodes of the other flavors drift. Whoever wants fewer flavors says so in the NodePool, where it
 * can be seen.
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
