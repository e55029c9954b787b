export { type HostPort, hostPortsOf } from './provisioning/host-ports.ts'
export { allocatableOf, highestPrice, worstLaunchPrice } from './provisioning/allocatable.ts'
export {
  accumulate,
  difference,
  fits,
  larger,
  podRequests,
  sum,
  withRequestsFromLimits,
} from './provisioning/pod-resources.ts'
export { TypeReader } from './provisioning/instance-rows.ts'
export { resultInSteps, schedule } from './provisioning/schedule.ts'
export { type Solution, solve } from './provisioning/solver.ts'
export { type PodReason, renderPodReason, renderShortage, type TemplateReason } from './reasons/reasons.ts'
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
export { type Problem, problemInSteps, problemOf, problemText, type ShapeSource } from './snapshot/problem.ts'
export type {
  AttachLimits,
  DaemonInput,
  NodeInput,
  PodOrigin,
  PodVolumes,
  PoolInput,
  SchedulingInput,
  SchedulingPolicy,
  TopologyInput,
  TopologyNode,
  VolumeUse,
} from './snapshot/input.ts'
export { balancedThreshold } from './disruption/balanced.ts'
export { allowedDisruptions, unlimited, unreadableBudget } from './disruption/budgets.ts'
export { examine, Examiner } from './disruption/examine.ts'
export { savingsOrder } from './disruption/savings-order.ts'
export {
  type ConsolidationRemark,
  type ConsolidationResult,
  type DisruptionResult,
  disruptionResult,
  type NodeRefusal,
  type PlannedMove,
  type RemovalResult,
} from './disruption/answer.ts'
export type {
  CandidateInput,
  ConsolidationQuestion,
  DisruptionAnswer,
  DisruptionQuestion,
  PoolTotals,
  Verdict,
} from './disruption/question.ts'
export type {
  Failure,
  NewClaim,
  Placement,
  PoolWithoutTypes,
  SchedulingControl,
  SchedulingResult,
  Fault,
} from './snapshot/result.ts'
export { type SelectorLookups, withDefaultSpread } from './eligibility/default-spread.ts'
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
  type MachineFigures,
  type Shortfall,
  shortfallOf,
} from './provisioning/corrected-type.ts'
export { type TemplateClaim, templateClaim } from './provisioning/static-claim.ts'
export { finished } from './steps.ts'
