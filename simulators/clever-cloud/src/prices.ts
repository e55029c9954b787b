/** Prices of the simulated platform's instances (clever-cloud.md 20). */
import { builtInFlavors, type PriceUnit, relativePrice } from '@tenon/provider-clever-cloud'

export const priceUnit: PriceUnit = '2XS-equivalents'

/** The price of a flavor, as a multiple of a 2XS; undefined for an unknown flavor. */
export function pricePerHour(flavor: string): number | undefined {
  const [smallest] = builtInFlavors
  const size = builtInFlavors.find(({ name }) => name === flavor)
  return smallest && size && relativePrice(size, smallest)
}
