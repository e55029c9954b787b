/** Which of two plans is cheaper. */

/** The cost of a plan's new nodes. */
export interface PlanCost {
  readonly nodes: number
  /** Sum of the known prices. */
  readonly pricePerHour: number
  /** The number of nodes of unknown price. */
  readonly unpriced: number
}

/** A plan with more nodes must save at least this share of the price. */
const worthMoreNodes = 0.01
/** Sums of equal prices in different order differ by less than this share. */
export const rounding = 1e-9

/**
 * Whether `plan` costs less than `other`, and clearly less if it has more nodes. A plan with fewer nodes of unknown price is
 * cheaper if its other nodes cost no more; a plan with more of them is never cheaper.
 */
export function isCheaper(plan: PlanCost, other: PlanCost): boolean {
  if (plan.unpriced !== other.unpriced)
    return plan.unpriced < other.unpriced && plan.pricePerHour <= other.pricePerHour + rounding
  const most = plan.nodes > other.nodes ? other.pricePerHour * (1 - worthMoreNodes) : other.pricePerHour
  return plan.pricePerHour < most - rounding
}
