export type { InstanceType, Offering, Requirement, RequirementOperator, Resources } from './instance-types.ts'
export {
  annotations,
  capacityTypes,
  disruptedTaint,
  karpenterGroup,
  labels,
  nodeClassLabel,
  normalizedLabel,
  terminationFinalizer,
  unregisteredTaint,
  wellKnownLabels,
} from './karpenter/labels.ts'
export {
  type Budget,
  type DisruptionReason,
  karpenterKinds,
  type NodeClaim,
  type NodeClaimTemplateSpec,
  type NodeClass,
  type NodeClassReference,
  type NodePool,
} from './karpenter/types.ts'
export type * from './objects.ts'
export { apiVersionOf, kinds, pathOf, type ResourceType } from './resources.ts'
