/** What pods, volumes and requirements mean; nothing that decides is loaded with it. */
export { type HostPort, hostPortsOf } from './input/host-ports.ts'
export {
  type PodReason,
  renderDeviceOffer,
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
export { problemText } from './input/problem-text.ts'
export type { AllocatedDevice, DeviceAllocation, DevicesInput } from './input/devices.ts'
export type {
  AttachLimits,
  MissingDrivers,
  DaemonInput,
  FitScoring,
  NodeInput,
  PodGroupInput,
  PodOrigin,
  PodVolumes,
  PoolInput,
  QuotaInput,
  SchedulingInput,
  SchedulingPolicy,
  TopologyInput,
  TopologyNode,
  VolumeUse,
} from './input/input.ts'
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
export { effectiveZone } from './eligibility/node-selection.ts'
export {
  canonicalKey,
  type ClassCapacity,
  type EligibilityPolicy,
  type LocalStorage,
  type VolumeLookups,
} from './eligibility/lookups.ts'
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
export { invalidObjectFields } from './eligibility/object-shape.ts'
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
