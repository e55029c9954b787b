import type {
  DaemonSet,
  KubeObject,
  LabelSelector,
  ObjectMeta,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  PodTemplateSpec,
  ResourceType,
  StorageClass,
  PersistentVolume,
} from '@tenon/api'

/** Condition of a workload. Deployments add `lastUpdateTime`, Jobs `lastProbeTime`. */
export interface WorkloadCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastUpdateTime?: string
  readonly lastProbeTime?: string
  readonly observedGeneration?: number
}

export type IntOrPercent = number | string

interface ReplicaStatus {
  readonly replicas?: number
  readonly readyReplicas?: number
  readonly availableReplicas?: number
  readonly observedGeneration?: number
  readonly conditions?: readonly WorkloadCondition[]
}

export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly selector: LabelSelector
    readonly template: PodTemplateSpec
    readonly strategy?: {
      readonly type?: 'RollingUpdate' | 'Recreate'
      readonly rollingUpdate?: {
        readonly maxSurge?: IntOrPercent
        readonly maxUnavailable?: IntOrPercent
      }
    }
    readonly minReadySeconds?: number
    readonly revisionHistoryLimit?: number
    readonly paused?: boolean
    readonly progressDeadlineSeconds?: number
  }
  readonly status?: ReplicaStatus & {
    readonly updatedReplicas?: number
    readonly unavailableReplicas?: number
    readonly collisionCount?: number
  }
}

/** A ReplicaSet, or a ReplicationController in this form. */
export interface ReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly minReadySeconds?: number
    readonly selector: LabelSelector
    readonly template: PodTemplateSpec
  }
  readonly status?: ReplicaStatus & { readonly fullyLabeledReplicas?: number }
}

export interface StatefulSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly selector: LabelSelector
    readonly template: PodTemplateSpec
    readonly serviceName?: string
    readonly podManagementPolicy?: 'OrderedReady' | 'Parallel'
    readonly volumeClaimTemplates?: readonly ClaimTemplate[]
    readonly updateStrategy?: {
      readonly type?: 'RollingUpdate' | 'OnDelete'
      readonly rollingUpdate?: { readonly partition?: number }
    }
    readonly minReadySeconds?: number
    readonly revisionHistoryLimit?: number
    readonly ordinals?: { readonly start?: number }
    readonly persistentVolumeClaimRetentionPolicy?: {
      readonly whenDeleted?: 'Retain' | 'Delete'
      readonly whenScaled?: 'Retain' | 'Delete'
    }
  }
  readonly status?: ReplicaStatus & {
    readonly currentReplicas?: number
    readonly updatedReplicas?: number
    readonly currentRevision?: string
    readonly updateRevision?: string
    readonly collisionCount?: number
  }
}

interface ClaimTemplate {
  readonly metadata: {
    readonly name: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: PersistentVolumeClaimSpec
}

export interface DaemonSetObject extends DaemonSet {
  readonly spec: DaemonSet['spec'] & {
    readonly updateStrategy?: {
      readonly type?: 'RollingUpdate' | 'OnDelete'
      readonly rollingUpdate?: {
        readonly maxSurge?: IntOrPercent
        readonly maxUnavailable?: IntOrPercent
      }
    }
    readonly minReadySeconds?: number
    readonly revisionHistoryLimit?: number
  }
  readonly status?: {
    readonly currentNumberScheduled?: number
    readonly desiredNumberScheduled?: number
    readonly collisionCount?: number
    readonly observedGeneration?: number
  }
}

export interface ControllerRevision extends KubeObject {
  readonly data?: unknown
  readonly revision: number
}

/** One rule of a Job's `podFailurePolicy`. */
export interface FailureRule {
  readonly action: 'FailJob' | 'FailIndex' | 'Ignore' | 'Count'
  readonly onExitCodes?: {
    readonly containerName?: string
    readonly operator: 'In' | 'NotIn'
    readonly values: readonly number[]
  }
  readonly onPodConditions?: readonly { readonly type: string; readonly status?: string }[]
}

export interface Job extends KubeObject {
  readonly spec: {
    readonly parallelism?: number
    readonly completions?: number
    readonly backoffLimit?: number
    readonly activeDeadlineSeconds?: number
    readonly ttlSecondsAfterFinished?: number
    readonly completionMode?: 'NonIndexed' | 'Indexed'
    readonly suspend?: boolean
    readonly selector?: LabelSelector
    readonly template: PodTemplateSpec
    readonly podFailurePolicy?: { readonly rules?: readonly FailureRule[] }
    readonly successPolicy?: {
      readonly rules?: readonly { readonly succeededIndexes?: string; readonly succeededCount?: number }[]
    }
    readonly backoffLimitPerIndex?: number
    readonly maxFailedIndexes?: number
    readonly podReplacementPolicy?: 'TerminatingOrFailed' | 'Failed'
  }
  readonly status?: {
    readonly failedIndexes?: string
    readonly active?: number
    readonly ready?: number
    readonly succeeded?: number
    readonly failed?: number
    readonly terminating?: number
    readonly startTime?: string
    readonly completionTime?: string
    readonly completedIndexes?: string
    readonly uncountedTerminatedPods?: {
      readonly succeeded?: readonly string[]
      readonly failed?: readonly string[]
    }
    readonly conditions?: readonly WorkloadCondition[]
  }
}

export interface CronJob extends KubeObject {
  readonly spec: {
    readonly schedule: string
    readonly timeZone?: string
    readonly startingDeadlineSeconds?: number
    readonly concurrencyPolicy?: 'Allow' | 'Forbid' | 'Replace'
    readonly suspend?: boolean
    readonly successfulJobsHistoryLimit?: number
    readonly failedJobsHistoryLimit?: number
    readonly jobTemplate: {
      readonly metadata?: Pick<ObjectMeta, 'labels' | 'annotations'>
      readonly spec: Job['spec']
    }
  }
  readonly status?: {
    readonly active?: readonly ObjectReference[]
    readonly lastScheduleTime?: string
    readonly lastSuccessfulTime?: string
  }
}

/** The target of an autoscaler's metric. */
export interface MetricTarget {
  readonly type: 'Utilization' | 'AverageValue' | 'Value'
  readonly averageUtilization?: number
  readonly averageValue?: string
}

export interface MetricSpec {
  readonly type: 'Resource' | 'ContainerResource' | 'Pods' | 'Object' | 'External'
  readonly resource?: { readonly name: string; readonly target: MetricTarget }
  readonly containerResource?: {
    readonly name: string
    readonly container: string
    readonly target: MetricTarget
  }
}

export interface ScalingRules {
  readonly stabilizationWindowSeconds?: number
  readonly selectPolicy?: 'Max' | 'Min' | 'Disabled'
  readonly policies?: readonly {
    readonly type: 'Pods' | 'Percent'
    readonly value: number
    readonly periodSeconds: number
  }[]
  /** Quantity; default 0.1. */
  readonly tolerance?: string
}

/** A HorizontalPodAutoscaler. */
export interface Autoscaler extends KubeObject {
  readonly spec: {
    readonly scaleTargetRef: { readonly apiVersion?: string; readonly kind: string; readonly name: string }
    readonly minReplicas?: number
    readonly maxReplicas: number
    readonly metrics?: readonly MetricSpec[]
    readonly behavior?: { readonly scaleUp?: ScalingRules; readonly scaleDown?: ScalingRules }
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly lastScaleTime?: string
    readonly currentReplicas?: number
    readonly desiredReplicas: number
    readonly currentMetrics?: readonly object[] | null
    readonly conditions?: readonly WorkloadCondition[]
  }
}

export interface Service extends KubeObject {
  readonly spec: {
    readonly selector?: Readonly<Record<string, string>>
    readonly type?: string
    readonly clusterIP?: string
    readonly loadBalancerClass?: string
    readonly loadBalancerIP?: string
    readonly ipFamilies?: readonly string[]
    readonly publishNotReadyAddresses?: boolean
    readonly ports?: readonly {
      readonly name?: string
      readonly port: number
      readonly protocol?: string
      readonly appProtocol?: string
      readonly targetPort?: number | string
    }[]
  }
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] }
  }
}

export interface Claim extends PersistentVolumeClaim {
  readonly spec: PersistentVolumeClaimSpec & {
    readonly volumeMode?: string
    readonly selector?: LabelSelector
  }
  readonly status?: {
    readonly phase?: string
    readonly capacity?: Readonly<Record<string, string>>
    readonly accessModes?: readonly string[]
  }
}

export interface ObjectReference {
  readonly apiVersion?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly uid?: string
}

export interface PersistentVolumeObject extends PersistentVolume {
  readonly spec: PersistentVolume['spec'] & {
    readonly capacity?: Readonly<Record<string, string>>
    readonly accessModes?: readonly string[]
    readonly claimRef?: ObjectReference
    readonly persistentVolumeReclaimPolicy?: string
    readonly volumeMode?: string
  }
  readonly status?: { readonly phase?: string }
}

export interface StorageClassObject extends StorageClass {
  readonly reclaimPolicy?: string
}

function of<T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced = true,
): ResourceType<T> {
  return { group, version, kind, plural, namespaced }
}

/** Kinds that only controllers use, in addition to those of `@tenon/api`. */
export const workloads = {
  deployment: of<Deployment>('apps', 'v1', 'Deployment', 'deployments'),
  replicaSet: of<ReplicaSet>('apps', 'v1', 'ReplicaSet', 'replicasets'),
  statefulSet: of<StatefulSet>('apps', 'v1', 'StatefulSet', 'statefulsets'),
  daemonSet: of<DaemonSetObject>('apps', 'v1', 'DaemonSet', 'daemonsets'),
  controllerRevision: of<ControllerRevision>('apps', 'v1', 'ControllerRevision', 'controllerrevisions'),
  replicationController: of<KubeObject>('', 'v1', 'ReplicationController', 'replicationcontrollers'),
  job: of<Job>('batch', 'v1', 'Job', 'jobs'),
  cronJob: of<CronJob>('batch', 'v1', 'CronJob', 'cronjobs'),
  autoscaler: of<Autoscaler>('autoscaling', 'v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'),
  service: of<Service>('', 'v1', 'Service', 'services'),
  serviceAccount: of<KubeObject>('', 'v1', 'ServiceAccount', 'serviceaccounts'),
  endpoints: of<KubeObject>('', 'v1', 'Endpoints', 'endpoints'),
  endpointSlice: of<KubeObject>('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices'),
  claim: of<Claim>('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  volume: of<PersistentVolumeObject>('', 'v1', 'PersistentVolume', 'persistentvolumes', false),
  storageClass: of<StorageClassObject>('storage.k8s.io', 'v1', 'StorageClass', 'storageclasses', false),
  customResourceDefinition: of<KubeObject>(
    'apiextensions.k8s.io',
    'v1',
    'CustomResourceDefinition',
    'customresourcedefinitions',
    false,
  ),
} as const
