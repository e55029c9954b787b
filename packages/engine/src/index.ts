export { type HostPort, hostPortsOf } from './provisioning/host-ports.ts'
export { allocatableOf } from './provisioning/instance-types.ts'
export {
  difference,
  fits,
  larger,
  podRequests,
  sum,
  withRequestsFromLimits,
} from './provisioning/pod-resources.ts'
export { schedule } from './provisioning/schedule.ts'
export { type PodReason, renderPodReason, type TemplateReason } from './reasons/reasons.ts'
export { allowsAbsence, has, oneOf, type ValueSet, valueSet } from './requirements/requirement.ts'
export {
  firstConflict,
  incompatibility,
  labelRequirements,
  merged,
  parseRequirements,
  podRequirements,
  type Requirements,
  requirementsOf,
} from './requirements/requirements.ts'
export type {
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
export { allowedDisruptions, unlimited } from './disruption/budgets.ts'
export type {
  Failure,
  NewClaim,
  Placement,
  PoolWithoutTypes,
  SchedulingControl,
  SchedulingResult,
} from './snapshot/result.ts'
