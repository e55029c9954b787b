/** When one plan is preferred to another. */

/** What a set of new nodes comes to. */
export interface PlanCost {
  readonly nodes: number
  readonly pricePerHour: number
}

/** More nodes must save at least this part of the price. */
const worthMoreNodes = 0.01
/** Sums of prices in another order differ by less. */
export const rounding = 1e-9

/** Whether `plan` costs less than `other`, clearly so if it has more nodes. */
export function isCheaper(plan: PlanCost, other: PlanCost): boolean {
  const most = plan.nodes > other.nodes ? other.pricePerHour * (1 - worthMoreNodes) : other.pricePerHour
  return plan.pricePerHour < most - rounding
}
