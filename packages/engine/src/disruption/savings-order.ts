/** What the order of candidates depends on. */
interface Saving {
  /** Of the node. */
  readonly name: string
  readonly pricePerHour: number
  /** What moving its pods costs; 1 or more. */
  readonly disruptionCost: number
}

/** The most money for the least disruption first; ties by node name (disruption.md 4). */
export function savingsOrder(a: Saving, b: Saving): number {
  const byRatio = b.pricePerHour / b.disruptionCost - a.pricePerHour / a.disruptionCost
  return byRatio || (a.name < b.name ? -1 : 1)
}
