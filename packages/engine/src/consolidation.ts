/** Decides which nodes go; what only schedules pods does not load it. */
export { disruptionResult } from './consolidation/answer.ts'
export { balancedThreshold } from './consolidation/balanced.ts'
export { isCheaper, isConfirmed } from './consolidation/confirmation.ts'
export { examine, Examiner } from './consolidation/examine.ts'
export { savingsOrder } from './consolidation/savings-order.ts'
export { overdrawnBudget } from './consolidation/together.ts'
