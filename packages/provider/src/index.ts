/**
 * What a provider needs. External providers only have this package, so it also exports the objects, the client and the
 * capabilities that the contract uses.
 */
export {
  admitsValue,
  annotations,
  capacityTypes,
  comparePrices,
  type Condition,
  ConditionSet,
  conditionOf,
  conditionsSchema,
  crd,
  type CrdSchema,
  formatResources,
  type InstanceType,
  integerSchema,
  isConditionTrue,
  isKnownPrice,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  listSchema,
  matchesSelector,
  type NewObject,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  normalizedLabel,
  objectSchema,
  type Offering,
  type OfferingRef,
  ownValue,
  parseDuration,
  parseResource,
  parseResources,
  quantitiesSchema,
  type Requirement,
  type Resources,
  type ResourceType,
  type Taint,
  textSchema,
  unregisteredTaint,
} from '@tenon/api'
export type { CloudRequests } from './cloud-requests.ts'
export type { CloudSimulator, SimulatedCloud, SimulatorParts } from '@tenon/devcluster'
export {
  type Cache,
  type CacheRegistry,
  type Change,
  type Controller,
  type ControllerDependencies,
  type ControllerOptions,
  createController,
  done,
  type EventInput,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type KubeErrorKind,
  type ObjectKey,
  type ReconcileResult,
  type WatchingKubeClient,
} from '@tenon/kube'
export {
  type Clock,
  type HttpRequest,
  type HttpResponse,
  integerBetween,
  type LogFields,
  type Logger,
  oneChunk,
  type Random,
  randomString,
  readText,
  rfc3339,
  Secret,
  type Transport,
  uuid,
} from '@tenon/runtime'
export { CatalogueGate, catalogueRecheckMs, type CatalogueVerdict } from './catalogue-gate.ts'
export {
  type AccessRule,
  type ChartTarget,
  type ChartValue,
  clusterRulesOf,
  type FormerChart,
  type ProviderChart,
} from './chart.ts'
export {
  type Blame,
  type CloudProvider,
  isProviderError,
  type NodeDefaults,
  type OfferingNews,
  type PoolRules,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type ProviderMetric,
  type RefusedOffering,
  type RegistrationHook,
  type RegistrationVerdict,
  type RepairPolicy,
} from './contract.ts'
export { decorated } from './decorated.ts'
export { isKubeletLabel, kubeletLabels } from './kubelet-labels.ts'
export { withProviderErrors } from './kube-errors.ts'
export { type NodeClassSource, readyNodeClass, unlessOvertaken } from './node-classes.ts'
export { replaceUnready } from './repair.ts'
export {
  allocatableOf,
  isSuitable,
  launchChoices,
  type LaunchChoice,
  offeringRef,
  singleValues,
} from './suitable-types.ts'
export { heldMessage, SweepGuard, type SweepGuardOptions, type SweepRound } from './sweep-guard.ts'
export {
  isProviderSettingError,
  type OfflineCatalogue,
  type OfflineFinding,
  type OfflineTypes,
  type ProviderDependencies,
  type ProviderKubernetes,
  type ProviderEnvironment,
  type ProviderModule,
  type ProviderOption,
  ProviderSettingError,
} from './module.ts'
export type {
  GuidedTour,
  ProviderSimulator,
  SimulatedInstance,
  SimulatedProvider,
  SimulationPace,
  SimulationPlace,
} from './simulator.ts'
export {
  type GroupFault,
  type ConnectedCluster,
  type GroupHold,
  type GroupInstance,
  type GroupOfNode,
  type Increase,
  type InstanceQuota,
  type NodeExample,
  type NodeGroup,
  type NodeGroupDependencies,
  NodeGroupError,
  type NodeGroupModule,
  type NodeGroupOptions,
  type NodeGroups,
  unboundedGroupSize,
} from './node-groups.ts'
export type {
  CheckedCluster,
  CloudAccess,
  CloudOperation,
  NodeGroupCheck,
  NodeGroupPreflight,
  NodeGroupPreflightDependencies,
  NodeGroupValues,
  OperationAnswer,
  PreflightDependencies,
  PreflightFinding,
  PreflightModule,
} from './preflight.ts'
export type { ExistingGroup, Recognition, Survey, SurveyDependencies, SurveyModule } from './survey.ts'
