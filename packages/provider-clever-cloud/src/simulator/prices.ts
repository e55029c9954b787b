/** What the machines of the simulated platform cost (clever-cloud.md 20). */
import { builtInFlavors } from '../catalogue/flavors.ts'
import { relativePrice } from '../catalogue/prices.ts'

/** One hour of a flavor, in hours of a 2XS; undefined for an unknown flavor. */
export function pricePerHour(flavor: string): number | undefined {
  const [smallest] = builtInFlavors
  const size = builtInFlavors.find(({ name }) => name === flavor)
  return smallest && size && relativePrice(size, smallest)
}
