/** Which of two plans is cheaper. */

/** The cost of a set of new nodes. */
export interface PlanCost {
  readonly nodes: number
  /** Of the nodes whose price is known. */
  readonly pricePerHour: number
  /** Nodes whose price is not known. */
  readonly unpriced: number
}

/** A plan with more nodes must save at least this share of the price. */
const worthMoreNodes = 0.01
/** Sums of the same prices in different order differ by less. */
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
