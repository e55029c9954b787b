export { type HostPort, hostPortsOf } from './input/host-ports.ts'
export { allocatableOf, highestPrice, worstLaunchPrice } from './scheduling/types/allocatable.ts'
export { demandsOf, likenessOf } from './scheduling/pods/likeness.ts'
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
export { exceededLimit } from './scheduling/claims/limits.ts'
export { KnownPackings } from './scheduling/packing/known-packings.ts'
export { TypeReader } from './scheduling/types/instance-rows.ts'
export type { SchedulingControl } from './scheduling/pace.ts'
export { resultInSteps, schedule } from './scheduling/schedule.ts'
export { type Solution, solve } from './scheduling/solver.ts'
export {
  type PodReason,
  renderPodReason,
  renderShortage,
  renderTemplateReason,
  type TemplateReason,
} from './reasons/reasons.ts'
export { allowsAbsence, anyValue, has, oneOf, type ValueSet, valueSet } from './requirements/requirement.ts'
export {
  compatible,
  conflictsOf,
  incompatibility,
  labelRequirements,
  merged,
  overlaps,
  parseRequirements,
  podRequirements,
  requiredAlternatives,
  type Requirements,
  requirementsOf,
} from './requirements/requirements.ts'
export { type Problem, problemInSteps, problemOf, type ShapeSource } from './scheduling/problem/problem.ts'
export { problemText } from './input/problem-text.ts'
export { knownSpecs } from './scheduling/problem/spec-reading.ts'
export type { AllocatedDevice, DeviceAllocation, DevicesInput } from './input/devices.ts'
export type {
  AttachLimits,
  DaemonInput,
  NodeInput,
  PodGroupInput,
  PodOrigin,
  PodVolumes,
  PoolInput,
  SchedulingInput,
  SchedulingPolicy,
  TopologyInput,
  TopologyNode,
  VolumeUse,
} from './input/input.ts'
export { balancedThreshold } from './consolidation/balanced.ts'
export { allowedDisruptions, unlimited, unreadableBudget } from './consolidation/budgets.ts'
export { type BudgetWindow, budgetWindows } from './consolidation/budget-windows.ts'
export { isCheaper, isConfirmed } from './consolidation/confirmation.ts'
export { examine, Examiner } from './consolidation/examine.ts'
export { savingsOrder } from './consolidation/savings-order.ts'
export { overdrawnBudget } from './consolidation/together.ts'
export {
  type ConsolidationRemark,
  type ConsolidationResult,
  type DisruptionResult,
  disruptionResult,
  type NodeRefusal,
  type PlannedMove,
  type RemovalResult,
} from './consolidation/answer.ts'
export type {
  CandidateInput,
  ConsolidationQuestion,
  DisruptionAnswer,
  DisruptionQuestion,
  PoolTotals,
  Verdict,
} from './consolidation/question.ts'
export type {
  DeferredClaim,
  Deferral,
  Failure,
  NewClaim,
  Placement,
  PodGroupResult,
  PoolWithoutTypes,
  SchedulingResult,
  Fault,
} from './input/result.ts'
export { effectiveZone } from './eligibility/effective-zones.ts'
export type { EligibilityPolicy, VolumeLookups } from './eligibility/lookups.ts'
export {
  type PodProblem,
  type PodProblems,
  renderPodProblems,
  renderVolumeProblem,
  type VolumeProblem,
} from './eligibility/problems.ts'
export {
  parseSchedulerConfig,
  renderSchedulerConfigProblems,
  type SchedulerConfig,
} from './eligibility/scheduler-config.ts'
export { misshapenObjectFields } from './eligibility/object-shape.ts'
export { shapeProblems, validatePod } from './eligibility/validation.ts'
export { FreeVolumes } from './eligibility/free-volumes.ts'
export {
  attachedClaims,
  claimedVolumes,
  noteFreeVolumes,
  resolveVolumes,
  volumesAdmit,
  withinVolumeLimits,
} from './eligibility/volumes.ts'
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
