export * from './objects.ts'
export { allocatableOf, highestPrice, worstLaunchPrice } from './scheduling/types/allocatable.ts'
export { demandsOf, interchangeKey } from './scheduling/pods/interchangeable.ts'
export { hardSpreadOf } from './scheduling/topology/hard-spread.ts'
export {
  type ClaimOffering,
  type LaunchPlace,
  offeringKey,
  offeringRefs,
  offeringsOf,
  scopeKey,
  scopesOf,
} from './scheduling/types/claim-offerings.ts'
export { exceededLimit, exceededQuota } from './scheduling/claims/launchable-claims.ts'
export { mayBeSelected } from './requirements/node-selection.ts'
export { PackingCache } from './scheduling/packing/packing-cache.ts'
export { TypeReader } from './scheduling/types/instance-rows.ts'
export type { SchedulingControl } from './scheduling/pace.ts'
export { resultInSteps, schedule } from './scheduling/schedule.ts'
export { type Solution, solve } from './scheduling/schedule.ts'
export { type Problem, problemInSteps, problemOf, type ShapeSource } from './scheduling/problem/problem.ts'
export { knownSpecs } from './scheduling/problem/spec-reading.ts'
export { allowedDisruptions, unlimited, unreadableBudget } from './consolidation/budgets.ts'
export { type BudgetWindow, budgetWindows, nextBudgetChangeMs } from './consolidation/budget-windows.ts'
export type {
  ConsolidationFinding,
  ConsolidationResult,
  DisruptionResult,
  NodeRefusal,
  PlannedMove,
  RemovalResult,
} from './consolidation/answer.ts'
export type {
  CandidateInput,
  ConsolidationQuestion,
  DisruptionAnswer,
  DisruptionQuestion,
  PoolTotals,
  Verdict,
} from './consolidation/question.ts'
export {
  evaluateOverlaysInSteps,
  type OverlayConflict,
  type OverlayEvaluation,
  type OverlayOutcome,
  type PoolOverlays,
  renderOverlayConflict,
} from './overlay/evaluation.ts'
export type { OfferedPool } from './overlay/matching.ts'
export { overlaidType, type TypeOverlay } from './overlay/overlaid-type.ts'
export { type OverlayProblem, renderOverlayProblems } from './overlay/validation.ts'
export {
  correctedType,
  type InstanceFigures,
  type Shortfall,
  shortfallOf,
} from './scheduling/types/corrected-type.ts'
export { type TemplateClaim, templateClaim } from './scheduling/claims/static-claim.ts'
export { finished } from './steps.ts'
