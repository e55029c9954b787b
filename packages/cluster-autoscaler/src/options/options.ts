/**
 * Settings of the Cluster Autoscaler mode, from its flags (cluster-autoscaler.md 8). Times in milliseconds.
 */
import type { TopologySpreadConstraint } from '@tenon/api'
import type { NodeGroupOptions } from '@tenon/provider'

/** Minimum and maximum of a resource in the whole cluster. */
export interface ResourceRange {
  readonly min: number
  readonly max: number
}

/** How many GPUs of a type the cluster may have: `--gpu-total`. */
export interface GpuRange extends ResourceRange {
  /** Value of the cloud's GPU label. */
  readonly type: string
}

/** Grace period of pods with a priority: `--drain-priority-config`. */
export interface DrainPriority {
  readonly priority: number
  readonly graceSeconds: number
}

export interface LoopOptions {
  readonly scanIntervalMs: number
  readonly frequentLoops: boolean
  readonly scaleUpFromZero: boolean
  readonly enforceNodeGroupMinSize: boolean
  readonly expendablePodsPriorityCutoff: number
  /** Empty = any scheduler. */
  readonly allowedSchedulerNames: readonly string[]
  readonly bypassedSchedulerNames: readonly string[]
  readonly newPodScaleUpDelayMs: number
  /** From `--scheduler-config-file`: spread constraints of pods that have none. */
  readonly defaultConstraints: readonly TopologySpreadConstraint[]
  /** `--planned-placement`: pods are nominated for the new nodes that they are planned for. */
  readonly plannedPlacement: boolean
}

export interface TaintOptions {
  /** `--startup-taint` and `--ignore-taint`. */
  readonly startupTaints: readonly string[]
  readonly startupTaintPrefixes: readonly string[]
  readonly statusTaints: readonly string[]
}

export interface TemplateOptions {
  readonly scaleFromUnschedulable: boolean
  readonly forceDaemonSets: boolean
  readonly nodeInfoCacheExpireTimeMs: number
}

export interface RegistryOptions {
  readonly maxNodeProvisionTimeMs: number
  readonly maxNodeStartupTimeMs: number
  readonly okTotalUnreadyCount: number
  /** 0 to 100. */
  readonly maxTotalUnreadyPercentage: number
  readonly forceDeleteUnregisteredNodes: boolean
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  readonly backoffResetTimeoutMs: number
}

export type ExpanderName = 'random' | 'most-pods' | 'least-nodes' | 'least-waste' | 'priority' | 'grpc'

export interface ScaleUpOptions {
  readonly expanders: readonly ExpanderName[]
  readonly grpcExpanderUrl: string
  readonly grpcExpanderCert: string
  /** 0 = unlimited. */
  readonly maxNodesTotal: number
  readonly cores: ResourceRange
  /** Bytes. */
  readonly memory: ResourceRange
  readonly gpus: readonly GpuRange[]
  readonly balanceSimilarNodeGroups: boolean
  readonly balancingIgnoreLabels: readonly string[]
  readonly balancingLabels: readonly string[]
  readonly memoryDifferenceRatio: number
  readonly maxFreeDifferenceRatio: number
  readonly maxAllocatableDifferenceRatio: number
  /** 0 = unlimited. */
  readonly maxNodesPerScaleUp: number
  readonly maxNodeGroupBinpackingMs: number
  readonly maxBinpackingMs: number
  readonly fastpathBinpacking: boolean
  readonly parallelScaleUp: boolean
  readonly salvoScaleUp: boolean
  readonly salvoScaleUpBudgetMs: number
  readonly explainSkippedNodeGroups: boolean
}

export interface DrainOptions {
  readonly skipNodesWithSystemPods: boolean
  readonly skipNodesWithLocalStorage: boolean
  readonly skipNodesWithCustomControllerPods: boolean
  readonly blockingSystemPodDisruptionTimeoutMs: number
  readonly minReplicaCount: number
}

export interface ScaleDownOptions extends DrainOptions {
  readonly enabled: boolean
  readonly unreadyEnabled: boolean
  readonly delayAfterAddMs: number
  readonly delayAfterDeleteMs: number
  readonly delayAfterFailureMs: number
  readonly delayTypeLocal: boolean
  readonly unneededTimeMs: number
  readonly unreadyTimeMs: number
  readonly utilizationThreshold: number
  readonly gpuUtilizationThreshold: number
  readonly ignoreDaemonSetsUtilization: boolean
  readonly ignoreMirrorPodsUtilization: boolean
  readonly simulationTimeoutMs: number
  readonly unremovableNodeRecheckTimeoutMs: number
  /** `--max-node-skip-eval-time-tracker-enabled` */
  readonly tracksSkippedNodes: boolean
  /** `--node-removal-latency-tracking-enabled` */
  readonly tracksRemovalLatency: boolean
  readonly maxParallelism: number
  readonly maxDrainParallelism: number
  /** 0 = as long as the pod specifies. */
  readonly maxGracefulTerminationSeconds: number
  /** If not empty, `maxGracefulTerminationSeconds` is ignored. */
  readonly drainPriorities: readonly DrainPriority[]
  readonly maxPodEvictionMs: number
  readonly deleteDelayAfterTaintMs: number
  readonly dynamicDeleteDelayAfterTaint: boolean
  readonly nodeDeletionBatcherIntervalMs: number
  readonly nodeDeletionDelayTimeoutMs: number
  readonly nodeDeletionCandidateTtlMs: number
  readonly maxBulkSoftTaintCount: number
  readonly maxBulkSoftTaintMs: number
  readonly cordonNodeBeforeTerminating: boolean
  readonly daemonSetEvictionForEmptyNodes: boolean
  readonly daemonSetEvictionForOccupiedNodes: boolean
  readonly cores: ResourceRange
  /** Bytes. */
  readonly memory: ResourceRange
  readonly gpus: readonly GpuRange[]
}

/** The options of one group. */
export function scaleDownOptionsOf(
  options: ScaleDownOptions,
  own: NodeGroupOptions | undefined,
): ScaleDownOptions {
  if (own === undefined) return options
  return {
    ...options,
    unneededTimeMs: own.scaleDownUnneededMs ?? options.unneededTimeMs,
    unreadyTimeMs: own.scaleDownUnreadyMs ?? options.unreadyTimeMs,
    utilizationThreshold: own.scaleDownUtilizationThreshold ?? options.utilizationThreshold,
    gpuUtilizationThreshold: own.scaleDownGpuUtilizationThreshold ?? options.gpuUtilizationThreshold,
  }
}

export interface StatusOptions {
  readonly namespace: string
  readonly writeStatusConfigMap: boolean
  readonly statusConfigMapName: string
  readonly emitPerNodeGroupMetrics: boolean
  readonly recordDuplicatedEvents: boolean
  readonly maxInactivityMs: number
  readonly maxFailingTimeMs: number
  readonly maxStartupTimeMs: number
}

/** ProvisioningRequests (gangs.md 1). */
export interface RequestOptions {
  /** `--enable-provisioning-requests` */
  readonly isEnabled: boolean
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** Maximum number of requests with a remembered back-off. */
  readonly maxBackoffCacheSize: number
  /** Whether several check-capacity requests are processed per loop. */
  readonly batchProcessing: boolean
  readonly maxBatchSize: number
  readonly batchTimeboxMs: number
  /** Only requests with this name are processed; empty = those without a name. */
  readonly processorInstance: string
}

/** The options for decisions. Those of the process (addresses, leases, logs) are in `process/`. */
export interface AutoscalerOptions {
  readonly loop: LoopOptions
  readonly taints: TaintOptions
  readonly templates: TemplateOptions
  readonly registry: RegistryOptions
  readonly scaleUp: ScaleUpOptions
  readonly scaleDown: ScaleDownOptions
  readonly requests: RequestOptions
  readonly status: StatusOptions
  /** `--dry-run`: nothing is written to the cluster or the cloud. */
  readonly isDryRun: boolean
}

const second = 1000
const minute = 60 * second
const gibibyte = 2 ** 30
const cores: ResourceRange = { min: 0, max: 320_000 }
const memory: ResourceRange = { min: 0, max: 6_400_000 * gibibyte }

export const defaultOptions: AutoscalerOptions = {
  loop: {
    scanIntervalMs: 10 * second,
    frequentLoops: true,
    scaleUpFromZero: true,
    enforceNodeGroupMinSize: false,
    expendablePodsPriorityCutoff: -10,
    allowedSchedulerNames: [],
    bypassedSchedulerNames: [],
    newPodScaleUpDelayMs: 0,
    defaultConstraints: [],
    plannedPlacement: false,
  },
  taints: { startupTaints: [], startupTaintPrefixes: [], statusTaints: [] },
  templates: {
    scaleFromUnschedulable: false,
    forceDaemonSets: false,
    nodeInfoCacheExpireTimeMs: 87_600 * 60 * minute,
  },
  registry: {
    maxNodeProvisionTimeMs: 15 * minute,
    maxNodeStartupTimeMs: 15 * minute,
    okTotalUnreadyCount: 3,
    maxTotalUnreadyPercentage: 45,
    forceDeleteUnregisteredNodes: false,
    initialBackoffMs: 5 * minute,
    maxBackoffMs: 30 * minute,
    backoffResetTimeoutMs: 180 * minute,
  },
  scaleUp: {
    expanders: ['least-waste'],
    grpcExpanderUrl: '',
    grpcExpanderCert: '',
    maxNodesTotal: 0,
    cores,
    memory,
    gpus: [],
    balanceSimilarNodeGroups: false,
    balancingIgnoreLabels: [],
    balancingLabels: [],
    memoryDifferenceRatio: 0.015,
    maxFreeDifferenceRatio: 0.05,
    maxAllocatableDifferenceRatio: 0.05,
    maxNodesPerScaleUp: 1000,
    maxNodeGroupBinpackingMs: 10 * second,
    maxBinpackingMs: 5 * minute,
    fastpathBinpacking: false,
    parallelScaleUp: false,
    salvoScaleUp: false,
    salvoScaleUpBudgetMs: minute,
    explainSkippedNodeGroups: false,
  },
  scaleDown: {
    skipNodesWithSystemPods: true,
    skipNodesWithLocalStorage: true,
    skipNodesWithCustomControllerPods: true,
    blockingSystemPodDisruptionTimeoutMs: 60 * minute,
    minReplicaCount: 0,
    enabled: true,
    unreadyEnabled: true,
    delayAfterAddMs: 10 * minute,
    delayAfterDeleteMs: 0,
    delayAfterFailureMs: 3 * minute,
    delayTypeLocal: false,
    unneededTimeMs: 10 * minute,
    unreadyTimeMs: 20 * minute,
    utilizationThreshold: 0.5,
    gpuUtilizationThreshold: 0.5,
    ignoreDaemonSetsUtilization: false,
    ignoreMirrorPodsUtilization: false,
    simulationTimeoutMs: 30 * second,
    unremovableNodeRecheckTimeoutMs: 5 * minute,
    tracksSkippedNodes: false,
    tracksRemovalLatency: false,
    maxParallelism: 10,
    maxDrainParallelism: 1,
    maxGracefulTerminationSeconds: 600,
    drainPriorities: [],
    maxPodEvictionMs: 2 * minute,
    deleteDelayAfterTaintMs: 5 * second,
    dynamicDeleteDelayAfterTaint: false,
    nodeDeletionBatcherIntervalMs: 0,
    nodeDeletionDelayTimeoutMs: 2 * minute,
    nodeDeletionCandidateTtlMs: 0,
    maxBulkSoftTaintCount: 10,
    maxBulkSoftTaintMs: 3 * second,
    cordonNodeBeforeTerminating: true,
    daemonSetEvictionForEmptyNodes: false,
    daemonSetEvictionForOccupiedNodes: true,
    cores,
    memory,
    gpus: [],
  },
  requests: {
    isEnabled: false,
    initialBackoffMs: minute,
    maxBackoffMs: 10 * minute,
    maxBackoffCacheSize: 1000,
    batchProcessing: false,
    maxBatchSize: 10,
    batchTimeboxMs: 10 * second,
    processorInstance: '',
  },
  status: {
    namespace: 'kube-system',
    writeStatusConfigMap: true,
    statusConfigMapName: 'cluster-autoscaler-status',
    emitPerNodeGroupMetrics: false,
    recordDuplicatedEvents: false,
    maxInactivityMs: 10 * minute,
    maxFailingTimeMs: 15 * minute,
    maxStartupTimeMs: 20 * minute,
  },
  isDryRun: false,
}
