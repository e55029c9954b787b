/**
 * The Kubernetes objects that Tenon reads and writes, as on the wire, reduced to the fields in use. All fields
 * are read-only, as objects of a cache are shared.
 */

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ManagedFieldsEntry {
  readonly manager?: string
  readonly operation?: string
  readonly apiVersion?: string
  readonly time?: string
  readonly fieldsType?: string
  readonly fieldsV1?: unknown
  readonly subresource?: string
}

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly generateName?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly ManagedFieldsEntry[]
}

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** An object to create; the API server may generate its name from `generateName`. */
export type NewObject<T extends KubeObject> = Omit<T, 'metadata'> & {
  readonly metadata: Omit<ObjectMeta, 'name'> & { readonly name?: string }
}

/** An object of a kind without a type here. */
export interface UnstructuredObject extends KubeObject {
  readonly [field: string]: unknown
}

/** Quantities by resource name (`500m`, `4Gi`). */
export type ResourceList = Readonly<Record<string, string>>

export type TaintEffect = 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'

export interface Taint {
  readonly key: string
  readonly value?: string
  readonly effect: TaintEffect
  readonly timeAdded?: string
}

export interface Toleration {
  readonly key?: string
  readonly operator?: 'Exists' | 'Equal' | 'Gt' | 'Lt'
  readonly value?: string
  readonly effect?: TaintEffect
  readonly tolerationSeconds?: number
}

export interface LabelSelectorRequirement {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values?: readonly string[]
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly LabelSelectorRequirement[]
}

/** A `metav1.Condition`. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

export interface NodeSelectorRequirement {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'
  readonly values?: readonly string[]
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[]
  readonly matchFields?: readonly NodeSelectorRequirement[]
}

/** One of the terms must match. */
export interface NodeSelector {
  readonly nodeSelectorTerms: readonly NodeSelectorTerm[]
}

export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector
  readonly namespaceSelector?: LabelSelector
  readonly namespaces?: readonly string[]
  readonly topologyKey: string
  readonly matchLabelKeys?: readonly string[]
  readonly mismatchLabelKeys?: readonly string[]
}

export interface WeightedPodAffinityTerm {
  readonly weight: number
  readonly podAffinityTerm: PodAffinityTerm
}

export interface PodAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[]
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodAffinityTerm[]
}

export interface Affinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: {
      readonly nodeSelectorTerms: readonly NodeSelectorTerm[]
    }
    readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
      readonly weight: number
      readonly preference: NodeSelectorTerm
    }[]
  }
  readonly podAffinity?: PodAffinity
  readonly podAntiAffinity?: PodAffinity
}

export interface TopologySpreadConstraint {
  readonly maxSkew: number
  readonly topologyKey: string
  readonly whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway'
  readonly labelSelector?: LabelSelector
  readonly matchLabelKeys?: readonly string[]
  readonly minDomains?: number
  readonly nodeAffinityPolicy?: 'Honor' | 'Ignore'
  readonly nodeTaintsPolicy?: 'Honor' | 'Ignore'
}

export interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  readonly hostPort?: number
  readonly hostIP?: string
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP'
}

export interface ResourceRequirements {
  readonly requests?: ResourceList
  readonly limits?: ResourceList
  readonly claims?: readonly { readonly name: string; readonly request?: string }[]
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly ports?: readonly ContainerPort[]
  readonly resources?: ResourceRequirements
  readonly restartPolicy?: string
  readonly restartPolicyRules?: readonly { readonly action?: string }[]
  readonly volumeMounts?: readonly { readonly name: string }[]
}

export interface Volume {
  readonly name: string
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean }
  readonly ephemeral?: {
    readonly volumeClaimTemplate: {
      readonly metadata?: Pick<ObjectMeta, 'labels' | 'annotations'>
      readonly spec: PersistentVolumeClaimSpec
    }
  }
  readonly hostPath?: { readonly path: string }
  readonly emptyDir?: { readonly medium?: string }
}

export interface PodSpec {
  readonly nodeName?: string
  readonly nodeSelector?: Readonly<Record<string, string>>
  readonly affinity?: Affinity
  readonly tolerations?: readonly Toleration[]
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[]
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly overhead?: ResourceList
  readonly runtimeClassName?: string
  readonly resources?: ResourceRequirements
  readonly volumes?: readonly Volume[]
  readonly priority?: number
  readonly priorityClassName?: string
  readonly preemptionPolicy?: string
  readonly schedulerName?: string
  readonly schedulingGates?: readonly { readonly name: string }[]
  readonly terminationGracePeriodSeconds?: number
  readonly restartPolicy?: string
  readonly hostNetwork?: boolean
  /** False: the pod has a user namespace of its own. */
  readonly hostUsers?: boolean
  /** The PodGroup that the pod belongs to. */
  readonly schedulingGroup?: { readonly podGroupName?: string }
  readonly resourceClaims?: readonly {
    readonly name: string
    readonly resourceClaimName?: string
    readonly resourceClaimTemplateName?: string
  }[]
}

export interface PodCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastProbeTime?: string
  readonly observedGeneration?: number
}

export interface ContainerStatus {
  readonly name: string
  readonly resources?: ResourceRequirements
  readonly allocatedResources?: ResourceList
  readonly ready?: boolean
  readonly restartCount?: number
  readonly state?: Readonly<Record<string, { readonly reason?: string; readonly exitCode?: number }>>
}

export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  readonly conditions?: readonly PodCondition[]
  readonly nominatedNodeName?: string
  readonly reason?: string
  readonly message?: string
  readonly startTime?: string
  readonly podIP?: string
  /** Claims created from templates; without a name if none was needed. */
  readonly resourceClaimStatuses?: readonly { readonly name: string; readonly resourceClaimName?: string }[]
  readonly extendedResourceClaimStatus?: ExtendedResourceClaimStatus
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
  /** What the pod as a whole has, which differs from `spec.resources` during an in-place resize; from 1.36 on. */
  readonly resources?: ResourceRequirements
  readonly allocatedResources?: ResourceList
}

/** The claim whose devices serve extended resources of a pod (devices.md 3.22). */
export interface ExtendedResourceClaimStatus {
  readonly resourceClaimName: string
  readonly requestMappings: readonly {
    readonly containerName: string
    readonly resourceName: string
    readonly requestName: string
  }[]
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec
  readonly status?: PodStatus
}

export interface NodeCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastHeartbeatTime?: string
  readonly lastTransitionTime?: string
}

export interface Node extends KubeObject {
  readonly spec?: {
    readonly providerID?: string
    readonly taints?: readonly Taint[]
    readonly unschedulable?: boolean
    readonly podCIDR?: string
  }
  readonly status?: {
    readonly capacity?: ResourceList
    readonly allocatable?: ResourceList
    readonly conditions?: readonly NodeCondition[]
    readonly addresses?: readonly { readonly type: string; readonly address: string }[]
    readonly phase?: string
    readonly nodeInfo?: Readonly<Record<string, string>>
    readonly daemonEndpoints?: { readonly kubeletEndpoint?: { readonly Port: number } }
    readonly volumesAttached?: readonly { readonly name: string; readonly devicePath: string }[]
    readonly volumesInUse?: readonly string[]
    /** Features of the kubelet, sorted; from 1.36 on. */
    readonly declaredFeatures?: readonly string[]
  }
}

export interface PodTemplateSpec {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: PodSpec
}

export interface PodTemplate extends KubeObject {
  readonly template: PodTemplateSpec
}

/** A Deployment, StatefulSet or ReplicaSet. */
export interface ScalableWorkload extends KubeObject {
  readonly spec: { readonly replicas?: number; readonly template: PodTemplateSpec }
}

/** With what decides how pods of it are replaced. */
export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly selector: LabelSelector
    readonly template: Pick<PodTemplateSpec, 'metadata'>
    readonly paused?: boolean
    readonly strategy?: {
      readonly type?: string
      readonly rollingUpdate?: {
        readonly maxSurge?: number | string
        readonly maxUnavailable?: number | string
      }
    }
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly replicas?: number
    readonly updatedReplicas?: number
    readonly availableReplicas?: number
    readonly conditions?: readonly Pick<Condition, 'type' | 'status' | 'reason'>[]
  }
}

export interface DaemonSet extends KubeObject {
  readonly spec: { readonly selector: LabelSelector; readonly template: PodTemplateSpec }
}

export interface LimitRangeItem {
  readonly type: string
  readonly min?: ResourceList
  readonly max?: ResourceList
  readonly default?: ResourceList
  readonly defaultRequest?: ResourceList
  readonly maxLimitRequestRatio?: ResourceList
}

export interface LimitRange extends KubeObject {
  readonly spec?: { readonly limits?: readonly LimitRangeItem[] }
}

export interface PodDisruptionBudget extends KubeObject {
  readonly spec: {
    readonly selector?: LabelSelector
    readonly minAvailable?: number | string
    readonly maxUnavailable?: number | string
    readonly unhealthyPodEvictionPolicy?: string
  }
  readonly status?: {
    readonly disruptionsAllowed?: number
    readonly currentHealthy?: number
    readonly desiredHealthy?: number
    readonly expectedPods?: number
    readonly observedGeneration?: number
  }
}

export interface PersistentVolumeClaimSpec {
  readonly accessModes?: readonly string[]
  readonly storageClassName?: string
  readonly volumeName?: string
  readonly volumeMode?: string
  /** Selects PersistentVolumes that may be bound; default: any. */
  readonly selector?: LabelSelector
  readonly resources?: ResourceRequirements
}

export interface PersistentVolumeClaim extends KubeObject {
  readonly spec: PersistentVolumeClaimSpec
  readonly status?: { readonly phase?: string }
}

export interface PersistentVolume extends KubeObject {
  readonly spec: {
    readonly csi?: { readonly driver: string; readonly volumeHandle?: string }
    readonly awsElasticBlockStore?: { readonly volumeID: string }
    readonly local?: { readonly path: string }
    readonly hostPath?: { readonly path: string }
    readonly nodeAffinity?: {
      readonly required?: NodeSelector
    }
    readonly storageClassName?: string
    readonly capacity?: ResourceList
    readonly accessModes?: readonly string[]
    readonly volumeMode?: string
    readonly claimRef?: { readonly namespace?: string; readonly name?: string; readonly uid?: string }
  }
  readonly status?: { readonly phase?: string }
}

export interface StorageClass extends KubeObject {
  readonly provisioner: string
  readonly volumeBindingMode?: string
  readonly allowedTopologies?: readonly {
    readonly matchLabelExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[]
  }[]
}

export interface CsiNode extends KubeObject {
  readonly spec: {
    readonly drivers: readonly {
      readonly name: string
      readonly nodeID: string
      readonly topologyKeys?: readonly string[]
      readonly allocatable?: { readonly count?: number }
    }[]
  }
}

export interface CsiDriver extends KubeObject {
  readonly spec: {
    /** Whether pods with volumes of the driver need a node that runs it (VolumeLimitScaling). */
    readonly preventPodSchedulingIfMissing?: boolean
    /** Whether the driver publishes CSIStorageCapacities, and volumes are provisioned only where one is large enough. */
    readonly storageCapacity?: boolean
  }
}

/** How much a StorageClass can provision for some nodes. */
export interface CsiStorageCapacity extends KubeObject {
  readonly storageClassName: string
  /** Nodes that reach the storage; absent = none. */
  readonly nodeTopology?: LabelSelector
  readonly capacity?: string
  readonly maximumVolumeSize?: string
}

export interface VolumeAttachment extends KubeObject {
  readonly spec: {
    readonly attacher: string
    readonly nodeName: string
    readonly source: { readonly persistentVolumeName?: string }
  }
}

export interface Secret extends KubeObject {
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
  readonly stringData?: Readonly<Record<string, string>>
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}

export interface Service extends KubeObject {
  readonly spec?: { readonly selector?: Readonly<Record<string, string>> }
}

export interface ReplicationController extends KubeObject {
  readonly spec?: { readonly selector?: Readonly<Record<string, string>> }
}

/** A ReplicaSet or StatefulSet, reduced to its selector. */
export interface SelectingWorkload extends KubeObject {
  readonly spec: { readonly selector: LabelSelector }
}

export interface Namespace extends KubeObject {
  readonly status?: { readonly phase?: string }
}

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

/** The body of responses that are not objects: errors and some deletions. */
export interface Status {
  readonly apiVersion: 'v1'
  readonly kind: 'Status'
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly code?: number
  readonly details?: {
    readonly name?: string
    readonly group?: string
    readonly kind?: string
    readonly uid?: string
    readonly retryAfterSeconds?: number
    readonly causes?: readonly {
      readonly reason?: string
      readonly message?: string
      readonly field?: string
    }[]
  }
}
