export { age, humanDuration } from './age.ts'
export { accumulate, difference, fits, larger, sum } from './amounts.ts'
export { perRequests, podRequests, requestsOf, type ResizedRequests } from './pod-requests.ts'
export { slicesOf } from './resource-slices.ts'
export { featuresAnnotation, requiredFeatures, undeclaredFeatures } from './declared-features.ts'
export {
  featuresOfKubelet,
  honoursNominations,
  minorOf,
  resizedRequests,
  type ScoredBalance,
  scoredBalance,
  servesImplicitNames,
  testedMinors,
} from './kubernetes-version.ts'
export { isResizeInfeasible } from './pod-resizes.ts'
export {
  type CompiledCapacity,
  compileCapacity,
  consumedCapacity,
  type DeviceAmount,
  type DeviceAmounts,
  deviceAmount,
  qualifiedDeviceName,
} from './device-amounts.ts'
export type {
  InstanceType,
  LaunchScope,
  Offering,
  OfferingRef,
  Requirement,
  RequirementOperator,
  Resources,
  Unavailability,
} from './instance-types.ts'
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
  autoscalingKinds,
  type Budget,
  type CapacityBuffer,
  type CapacityQuota,
  type DisruptionReason,
  disruptionReasons,
  karpenterKinds,
  type NodeClaim,
  type NodeClaimTemplateSpec,
  type NodeClass,
  type NodeClassReference,
  type NodeOverlay,
  type NodePool,
  type ProvisioningRequest,
} from './karpenter/types.ts'
export {
  selectsDevice,
  type TaintedDevice,
  taintsOfRules,
  toleratesDeviceTaint,
} from './device-taint-rules.ts'
export type * from './devices.ts'
export type * from './objects.ts'
export {
  extendedResourceClaimAnnotation,
  extendedResourceClasses,
  extendedResourceRequests,
  type ExtendedResourceRequests,
} from './extended-resources.ts'
export { apiVersionOf, deviceTaintRuleKinds, kinds, pathOf, type ResourceType } from './resources.ts'
export {
  type ConditionSchema,
  ConditionSet,
  conditionOf,
  isConditionTrue,
  type NewCondition,
  sameCondition,
  withCondition,
} from './conditions.ts'
export { counted } from './counted.ts'
export { parseSchedule, type Schedule } from './cron.ts'
export { timeZoneOf } from './local-time.ts'
export {
  readWindows,
  type TimeWindow,
  windowChanges,
  windowsFix,
  type WindowsReading,
  type WindowsState,
  windowsState,
} from './time-windows.ts'
export { formatDuration, parseDuration, parseNillableDuration } from './duration.ts'
export {
  canonicalQuantity,
  formatResource,
  formatResources,
  isQuantity,
  parseResource,
  parseResources,
  quantityNanos,
  quantityText,
  scaledQuantity,
} from './quantity.ts'
export { isLabelValue, labelValueProblem, qualifiedNameProblem } from './label-syntax.ts'
export { type SelectorLookups, withDefaultSpread } from './default-spread.ts'
export {
  type ContainerResourcePolicy,
  type VerticalPodAutoscaler,
  verticalPodAutoscalerKind,
} from './vertical-pod-autoscaler.ts'
export { meetsNodeSelectorTerm, meetsRequirement } from './node-selector.ts'
export { matchesSelector, parseSelector, selectorText } from './selector.ts'
export {
  comparePrices,
  isKnownPrice,
  lowestPrice,
  mostPricePerHour,
  priceText,
  type PricePerHour,
  type PriceSum,
  sumOfPrices,
} from './prices.ts'
export { decimalPrice, noPrices, type PriceList, readPriceFile } from './price-file.ts'
export { isKnownEphemeralTaint, sameTaint, taintText, tolerates, untoleratedTaint } from './taints.ts'
export {
  hashRecord,
  hashString,
  hashStringMap,
  nodePoolHash,
  nodePoolHashVersion,
} from './karpenter/hash.ts'
export {
  isQuotaEnforced,
  quotaFailedReason,
  quotaProblem,
  quotaStatus,
  quotaValidType,
  readQuota,
  withReadableStatus,
} from './karpenter/capacity-quota.ts'
export { capacityBufferCrd } from './crds/capacitybuffer.ts'
export { capacityQuotaCrd } from './crds/capacityquota.ts'
export { nodeClaimCrd } from './crds/nodeclaim.ts'
export { nodeOverlayCrd } from './crds/nodeoverlay.ts'
export { nodePoolCrd } from './crds/nodepool.ts'
export { provisioningRequestCrd } from './crds/provisioningrequest.ts'
export {
  type CelRule,
  type CrdSchema,
  conditions as conditionsSchema,
  crd,
  integer as integerSchema,
  list as listSchema,
  object as objectSchema,
  quantities as quantitiesSchema,
  text as textSchema,
} from './crds/schema.ts'
export { defaultStorageClass, largestVolume, storageClassNameOf } from './storage-classes.ts'
export { admitsValue } from './requirement-values.ts'
export { isRecord } from './is-record.ts'
export { nearest } from './nearest.ts'
export { ownValue, setOwn } from './own.ts'
export { controllerOf, type Owner, ownerOf } from './owners.ts'
export { compareResourceVersions } from './resource-version.ts'
export { wireFields } from './wire-fields.ts'
export { type MemberGroup, type PodGroup, podGroupKinds } from './pod-groups.ts'
export {
  containerDefaults,
  withAdmission,
  withContainerDefaults,
  withDefaultTolerations,
  withRequestsFromLimits,
} from './pod-defaults.ts'
export { consumedBy, consumedClassOf } from './requests/consumers.ts'
export {
  acceptedCondition,
  bookingEndedCondition,
  expiredCondition,
  failedCondition,
  type FailureReason,
  foundCondition,
  notFoundCondition,
} from './requests/request-conditions.ts'
export {
  isRequestPod,
  requestPods,
  type RequestSet,
} from './requests/request-pods.ts'
export { requestedPods, requestSets, templateWaitMs } from './requests/request-sets.ts'
export {
  beingProvisioned,
  isTriedOnce,
  provisioningClasses,
  type RequestClass,
  requestClassNames,
  requestClassOf,
  requestLifeMs,
  requestStageOf,
  requestStateOf,
  type RequestState,
  withRequestCondition,
} from './requests/request-stage.ts'
