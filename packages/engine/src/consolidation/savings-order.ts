import type { PricePerHour } from '@tenon/api'

/** The figures by which candidates are ordered. */
interface Saving {
  readonly pricePerHour: PricePerHour
  /** The cost of moving its pods; 1 or more. */
  readonly disruptionCost: number
}

/** The most money for the least disruption first, unknown prices last; 0 for ties (disruption.md 4). */
export function savingsOrder(a: Saving, b: Saving): number {
  return ratioOf(b) - ratioOf(a)
}

/** Unknown prices come after price 0. */
const ratioOf = ({ pricePerHour, disruptionCost }: Saving) =>
  pricePerHour === undefined ? -1 : pricePerHour / disruptionCost
