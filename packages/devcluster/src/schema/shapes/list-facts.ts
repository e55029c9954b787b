/**
 * How lists and structs of built-in kinds merge. Keys are `Model.field`. - `patch`: strategic merge patch, `merge:key`,
 * `merge` (a set of scalars), `retainKeys`, or both. - `apply`: server-side apply, `map:key,key` or `set`. Other lists
 * are atomic.
 */
interface ListFact {
  readonly patch?: string
  readonly apply?: string
}

const conditionsByType: ListFact = { patch: 'merge:type', apply: 'map:type' }
const byName: ListFact = { patch: 'merge:name', apply: 'map:name' }

const containerLists = (model: string): Record<string, ListFact> => ({
  [`${model}.env`]: byName,
  [`${model}.ports`]: { patch: 'merge:containerPort', apply: 'map:containerPort,protocol' },
  [`${model}.volumeDevices`]: { patch: 'merge:devicePath', apply: 'map:devicePath' },
  [`${model}.volumeMounts`]: { patch: 'merge:mountPath', apply: 'map:mountPath' },
})

/** Lists that are not atomic. */
export const listFacts: Readonly<Record<string, ListFact>> = {
  ...containerLists('V1Container'),
  ...containerLists('V1EphemeralContainer'),
  'V1APIServiceStatus.conditions': conditionsByType,
  'V1AllocatedDeviceStatus.conditions': { apply: 'map:type' },
  'V1CSINodeSpec.drivers': byName,
  'V1CertificateSigningRequestStatus.conditions': { apply: 'map:type' },
  'V1ContainerStatus.allocatedResourcesStatus': byName,
  'V1ContainerStatus.volumeMounts': { patch: 'merge:mountPath', apply: 'map:mountPath' },
  'V1CustomResourceDefinitionStatus.conditions': { apply: 'map:type' },
  'V1DaemonSetStatus.conditions': conditionsByType,
  'V1DeploymentStatus.conditions': conditionsByType,
  'V1FlowSchemaStatus.conditions': conditionsByType,
  'V1JSONSchemaProps.x-kubernetes-validations': { patch: 'merge:rule', apply: 'map:rule' },
  'V1JobStatus.conditions': { patch: 'merge:type' },
  'V1MutatingAdmissionPolicySpec.matchConditions': byName,
  'V1MutatingAdmissionPolicySpec.variables': byName,
  'V1MutatingWebhook.matchConditions': byName,
  'V1MutatingWebhookConfiguration.webhooks': byName,
  'V1NamespaceStatus.conditions': conditionsByType,
  'V1NodeSpec.podCIDRs': { patch: 'merge', apply: 'set' },
  'V1NodeStatus.addresses': { patch: 'merge:type', apply: 'map:type' },
  'V1NodeStatus.conditions': conditionsByType,
  'V1ObjectMeta.finalizers': { patch: 'merge', apply: 'set' },
  'V1ObjectMeta.ownerReferences': { patch: 'merge:uid', apply: 'map:uid' },
  'V1PersistentVolumeClaimStatus.conditions': conditionsByType,
  'V1PodDisruptionBudgetStatus.conditions': conditionsByType,
  'V1PodSpec.containers': byName,
  'V1PodSpec.ephemeralContainers': byName,
  'V1PodSpec.hostAliases': { patch: 'merge:ip', apply: 'map:ip' },
  'V1PodSpec.imagePullSecrets': byName,
  'V1PodSpec.initContainers': byName,
  'V1PodSpec.resourceClaims': { patch: 'merge,retainKeys:name', apply: 'map:name' },
  'V1PodSpec.schedulingGates': byName,
  'V1PodSpec.topologySpreadConstraints': {
    patch: 'merge:topologyKey',
    apply: 'map:topologyKey,whenUnsatisfiable',
  },
  'V1PodSpec.volumes': { patch: 'merge,retainKeys:name', apply: 'map:name' },
  'V1PodStatus.conditions': conditionsByType,
  'V1PodStatus.hostIPs': { patch: 'merge:ip' },
  'V1PodStatus.podIPs': { patch: 'merge:ip', apply: 'map:ip' },
  'V1PodStatus.resourceClaimStatuses': { patch: 'merge,retainKeys:name', apply: 'map:name' },
  'V1PriorityLevelConfigurationStatus.conditions': conditionsByType,
  'V1ReplicaSetStatus.conditions': conditionsByType,
  'V1ReplicationControllerStatus.conditions': conditionsByType,
  'V1ResourceClaimStatus.devices': { apply: 'map:driver,device,pool,shareID' },
  'V1ResourceClaimStatus.reservedFor': { patch: 'merge:uid', apply: 'map:uid' },
  'V1ResourceRequirements.claims': { apply: 'map:name' },
  'V1ServiceAccount.secrets': { patch: 'merge:name', apply: 'map:name' },
  'V1ServiceSpec.ports': { patch: 'merge:port', apply: 'map:port,protocol' },
  'V1ServiceStatus.conditions': conditionsByType,
  'V1StatefulSetStatus.conditions': conditionsByType,
  'V1UncountedTerminatedPods.failed': { apply: 'set' },
  'V1UncountedTerminatedPods.succeeded': { apply: 'set' },
  'V1ValidatingAdmissionPolicyBindingSpec.validationActions': { apply: 'set' },
  'V1ValidatingAdmissionPolicySpec.matchConditions': byName,
  'V1ValidatingAdmissionPolicySpec.variables': byName,
  'V1ValidatingAdmissionPolicyStatus.conditions': { apply: 'map:type' },
  'V1ValidatingWebhook.matchConditions': byName,
  'V1ValidatingWebhookConfiguration.webhooks': byName,
  'V1alpha2PodGroupSpec.resourceClaims': { patch: 'merge,retainKeys:name', apply: 'map:name' },
  'V1alpha2PodGroupStatus.conditions': conditionsByType,
  'V1alpha2PodGroupStatus.resourceClaimStatuses': { patch: 'merge,retainKeys:name', apply: 'map:name' },
  'V1alpha2PodGroupTemplate.resourceClaims': { patch: 'merge,retainKeys:name', apply: 'map:name' },
  'V1alpha2WorkloadSpec.podGroupTemplates': { apply: 'map:name' },
  'V1beta2DeviceTaintRuleStatus.conditions': { apply: 'map:type' },
  'V2HorizontalPodAutoscalerStatus.conditions': conditionsByType,
}

/** Structs with patch strategy `retainKeys`: the patch lists the keys that stay. */
export const retainKeysFields: ReadonlySet<string> = new Set(['V1DeploymentSpec.strategy'])

/** Models that are atomic in server-side apply. */
export const atomicModels: ReadonlySet<string> = new Set(
  (
    'V1LabelSelector V1NodeSelector V1NodeSelectorTerm V1TopologySelectorTerm V1LocalObjectReference ' +
    'V1ObjectReference V1TypedLocalObjectReference V1ObjectFieldSelector V1ResourceFieldSelector ' +
    'V1ConfigMapKeySelector V1SecretKeySelector V1SecretReference V1OwnerReference V1EndpointAddress ' +
    'CoreV1EndpointPort DiscoveryV1EndpointPort V1ServiceBackendPort V1CrossVersionObjectReference ' +
    'V1ScopeSelector V1RoleRef RbacV1Subject V1MatchResources V1NamedRuleWithOperations V1ParamKind V1ParamRef ' +
    'V1FileKeySelector'
  ).split(' '),
)

/** Maps of scalars that are atomic in server-side apply. */
export const atomicMaps: ReadonlySet<string> = new Set([
  'V1PodSpec.nodeSelector',
  'V1ServiceSpec.selector',
  'V1ReplicationControllerSpec.selector',
  'V1Scheduling.nodeSelector',
])

/**
 * Structs and lists that are always serialized (Go fields without `omitempty`). Nobody owns the field itself, only its
 * content.
 */
export const alwaysPresentFields: ReadonlySet<string> = new Set(
  (
    'V1PodSpec.containers V1PodTemplateSpec.metadata V1PodTemplateSpec.spec V1DeploymentSpec.template ' +
    'V1DeploymentSpec.strategy V1DaemonSetSpec.template V1DaemonSetSpec.updateStrategy ' +
    'V1StatefulSetSpec.template V1StatefulSetSpec.updateStrategy V1ReplicaSetSpec.template V1JobSpec.template ' +
    'V1CronJobSpec.jobTemplate V1JobTemplateSpec.metadata V1JobTemplateSpec.spec V1NodeStatus.daemonEndpoints ' +
    'V1NodeStatus.nodeInfo V1ServiceStatus.loadBalancer V1IngressStatus.loadBalancer V1CSINodeSpec.drivers ' +
    'V1PersistentVolumeClaimSpec.resources V1CustomResourceDefinitionSpec.names CoreV1Event.source ' +
    'CoreV1Event.involvedObject V1NodeDaemonEndpoints.kubeletEndpoint V1PodTemplate.template'
  ).split(' '),
)

/** Fields and map values that are quantities. */
export const quantityFields: ReadonlySet<string> = new Set(
  (
    'V1CapacityRequirements.requests V1ContainerStatus.allocatedResources V1LimitRangeItem.default ' +
    'V1LimitRangeItem.defaultRequest V1LimitRangeItem.max V1LimitRangeItem.maxLimitRequestRatio ' +
    'V1LimitRangeItem.min V1NodeStatus.allocatable V1NodeStatus.capacity V1Overhead.podFixed ' +
    'V1PersistentVolumeClaimStatus.allocatedResources V1PersistentVolumeClaimStatus.capacity ' +
    'V1PersistentVolumeSpec.capacity V1PodSpec.overhead V1PodStatus.allocatedResources ' +
    'V1ResourceQuotaSpec.hard V1ResourceQuotaStatus.hard V1ResourceQuotaStatus.used ' +
    'V1ResourceRequirements.limits V1ResourceRequirements.requests V1VolumeResourceRequirements.limits ' +
    'V1VolumeResourceRequirements.requests V1EmptyDirVolumeSource.sizeLimit V1ResourceFieldSelector.divisor ' +
    'V1CSIStorageCapacity.capacity V1CSIStorageCapacity.maximumVolumeSize V2MetricTarget.value ' +
    'V2MetricTarget.averageValue V2MetricValueStatus.value V2MetricValueStatus.averageValue ' +
    'V1DeviceCapacity.value V1Counter.value V1DeviceRequestAllocationResult.consumedCapacity ' +
    'V1CapacityRequestPolicy.default V1CapacityRequestPolicy.validValues V1CapacityRequestPolicyRange.min ' +
    'V1CapacityRequestPolicyRange.max V1CapacityRequestPolicyRange.step V2HPAScalingRules.tolerance ' +
    'V1NodeAllocatableResourceClaimStatus.resources'
  ).split(' '),
)

/** Defaults of list keys that an item omits. */
export const keyDefaults: Readonly<Record<string, string>> = {
  'V1ContainerPort.protocol': 'TCP',
  'V1ServicePort.protocol': 'TCP',
}
