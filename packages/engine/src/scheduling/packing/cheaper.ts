/** When one plan is preferred to another. */

/** What a set of new nodes comes to. */
export interface PlanCost {
  readonly nodes: number
  /** Of the nodes whose price is known. */
  readonly pricePerHour: number
  /** Nodes whose price is not known. */
  readonly unpriced: number
}

/** More nodes must save at least this part of the price. */
const worthMoreNodes = 0.01
/** Sums of prices in another order differ by less. */
export const rounding = 1e-9

/**
 * Whether `plan` costs less than `other`, clearly so if it has more nodes. With fewer nodes of unknown price it
 * does if the others cost no more; with more of them nobody can say.
 */
export function isCheaper(plan: PlanCost, other: PlanCost): boolean {
  if (plan.unpriced !== other.unpriced)
    return plan.unpriced < other.unpriced && plan.pricePerHour <= other.pricePerHour + rounding
  const most = plan.nodes > other.nodes ? other.pricePerHour * (1 - worthMoreNodes) : other.pricePerHour
  return plan.pricePerHour < most - rounding
}
