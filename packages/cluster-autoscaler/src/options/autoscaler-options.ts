import { drainPrioritiesOf } from './drain-priorities.ts'
import { expandersOf } from './fatal-problems.ts'
import type { FlagValues } from './flag-values.ts'
import {
  type AutoscalerOptions,
  type LoopOptions,
  type RegistryOptions,
  type RequestOptions,
  type ScaleDownOptions,
  type ScaleUpOptions,
  type StatusOptions,
  type TaintOptions,
  type TemplateOptions,
  defaultOptions,
} from './options.ts'
import { gpuRangeOf, rangeOf } from './texts.ts'

const gibibyte = 2 ** 30
/** Lower values would only cause useless loops. */
const leastScanIntervalMs = 1000

/** Converts valid flag values to options. */
export function autoscalerOptions(values: FlagValues): AutoscalerOptions {
  return {
    loop: loopOptions(values),
    taints: taintOptions(values),
    templates: templateOptions(values),
    registry: registryOptions(values),
    scaleUp: scaleUpOptions(values),
    scaleDown: scaleDownOptions(values),
    requests: requestOptions(values),
    status: statusOptions(values),
    isDryRun: values.isOn('dry-run'),
  }
}

function loopOptions(values: FlagValues): LoopOptions {
  return {
    scanIntervalMs: Math.max(leastScanIntervalMs, values.durationMs('scan-interval')),
    frequentLoops: values.isOn('frequent-loops-enabled'),
    scaleUpFromZero: values.isOn('scale-up-from-zero'),
    enforceNodeGroupMinSize: values.isOn('enforce-node-group-min-size'),
    expendablePodsPriorityCutoff: values.integer('expendable-pods-priority-cutoff'),
    allowedSchedulerNames: values.list('allowed-scheduler-names'),
    bypassedSchedulerNames: values.list('bypassed-scheduler-names'),
    newPodScaleUpDelayMs: values.durationMs('new-pod-scale-up-delay'),
    defaultConstraints: defaultOptions.loop.defaultConstraints,
    plannedPlacement: values.isOn('planned-placement'),
  }
}

function taintOptions(values: FlagValues): TaintOptions {
  return {
    startupTaints: [...values.list('startup-taint'), ...values.list('ignore-taint')],
    startupTaintPrefixes: values.list('startup-taint-prefix'),
    statusTaints: values.list('status-taint'),
  }
}

function templateOptions(values: FlagValues): TemplateOptions {
  return {
    scaleFromUnschedulable: values.isOn('scale-from-unschedulable'),
    forceDaemonSets: values.isOn('force-ds'),
    nodeInfoCacheExpireTimeMs: values.durationMs('node-info-cache-expire-time'),
  }
}

function registryOptions(values: FlagValues): RegistryOptions {
  return {
    maxNodeProvisionTimeMs: values.durationMs('max-node-provision-time'),
    maxNodeStartupTimeMs: values.durationMs('max-node-startup-time'),
    okTotalUnreadyCount: values.integer('ok-total-unready-count'),
    maxTotalUnreadyPercentage: values.number('max-total-unready-percentage'),
    forceDeleteUnregisteredNodes: values.isOn('force-delete-unregistered-nodes'),
    initialBackoffMs: values.durationMs('initial-node-group-backoff-duration'),
    maxBackoffMs: values.durationMs('max-node-group-backoff-duration'),
    backoffResetTimeoutMs: values.durationMs('node-group-backoff-reset-timeout'),
  }
}

function scaleUpOptions(values: FlagValues): ScaleUpOptions {
  return {
    expanders: expandersOf(values),
    grpcExpanderUrl: values.text('grpc-expander-url'),
    grpcExpanderCert: values.text('grpc-expander-cert'),
    maxNodesTotal: Math.max(0, values.integer('max-nodes-total')),
    ...resourceRanges(values),
    balanceSimilarNodeGroups: values.isOn('balance-similar-node-groups'),
    balancingIgnoreLabels: values.list('balancing-ignore-label'),
    balancingLabels: values.list('balancing-label'),
    memoryDifferenceRatio: values.number('memory-difference-ratio'),
    maxFreeDifferenceRatio: values.number('max-free-difference-ratio'),
    maxAllocatableDifferenceRatio: values.number('max-allocatable-difference-ratio'),
    maxNodesPerScaleUp: Math.max(0, values.integer('max-nodes-per-scaleup')),
    maxNodeGroupBinpackingMs: values.durationMs('max-nodegroup-binpacking-duration'),
    maxBinpackingMs: values.durationMs('max-binpacking-time'),
    fastpathBinpacking: values.isOn('fastpath-binpacking-enabled'),
    parallelScaleUp: values.isOn('parallel-scale-up'),
    salvoScaleUp: values.isOn('salvo-scale-up'),
    salvoScaleUpBudgetMs: values.durationMs('salvo-scale-up-budget'),
    explainSkippedNodeGroups: values.isOn('scaleup-simulation-for-skipped-node-groups-enabled'),
  }
}

function scaleDownOptions(values: FlagValues): ScaleDownOptions {
  return {
    skipNodesWithSystemPods: values.isOn('skip-nodes-with-system-pods'),
    skipNodesWithLocalStorage: values.isOn('skip-nodes-with-local-storage'),
    skipNodesWithCustomControllerPods: values.isOn('skip-nodes-with-custom-controller-pods'),
    blockingSystemPodDisruptionTimeoutMs: values.durationMs('blocking-system-pod-distruption-timeout'),
    minReplicaCount: values.integer('min-replica-count'),
    enabled: values.isOn('scale-down-enabled'),
    unreadyEnabled: values.isOn('scale-down-unready-enabled'),
    delayAfterAddMs: values.durationMs('scale-down-delay-after-add'),
    delayAfterDeleteMs: values.durationMs('scale-down-delay-after-delete'),
    delayAfterFailureMs: values.durationMs('scale-down-delay-after-failure'),
    delayTypeLocal: values.isOn('scale-down-delay-type-local'),
    unneededTimeMs: values.durationMs('scale-down-unneeded-time'),
    unreadyTimeMs: values.durationMs('scale-down-unready-time'),
    utilizationThreshold: values.number('scale-down-utilization-threshold'),
    gpuUtilizationThreshold: values.number('scale-down-gpu-utilization-threshold'),
    ignoreDaemonSetsUtilization: values.isOn('ignore-daemonsets-utilization'),
    ignoreMirrorPodsUtilization: values.isOn('ignore-mirror-pods-utilization'),
    simulationTimeoutMs: values.durationMs('scale-down-simulation-timeout'),
    unremovableNodeRecheckTimeoutMs: values.durationMs('unremovable-node-recheck-timeout'),
    tracksRemovalLatency: values.isOn('node-removal-latency-tracking-enabled'),
    tracksSkippedNodes: values.isOn('max-node-skip-eval-time-tracker-enabled'),
    maxParallelism: parallelismOf(values),
    maxDrainParallelism: values.integer('max-drain-parallelism'),
    maxGracefulTerminationSeconds: Math.max(0, values.integer('max-graceful-termination-sec')),
    drainPriorities: drainPrioritiesOf(values.text('drain-priority-config')) ?? [],
    maxPodEvictionMs: values.durationMs('max-pod-eviction-time'),
    deleteDelayAfterTaintMs: values.durationMs('node-delete-delay-after-taint'),
    dynamicDeleteDelayAfterTaint: values.isOn('dynamic-node-delete-delay-after-taint-enabled'),
    nodeDeletionBatcherIntervalMs: values.durationMs('node-deletion-batcher-interval'),
    nodeDeletionDelayTimeoutMs: values.durationMs('node-deletion-delay-timeout'),
    nodeDeletionCandidateTtlMs: values.durationMs('node-deletion-candidate-ttl'),
    maxBulkSoftTaintCount: Math.max(0, values.integer('max-bulk-soft-taint-count')),
    maxBulkSoftTaintMs: values.durationMs('max-bulk-soft-taint-time'),
    cordonNodeBeforeTerminating: values.isOn('cordon-node-before-terminating'),
    daemonSetEvictionForEmptyNodes: values.isOn('daemonset-eviction-for-empty-nodes'),
    daemonSetEvictionForOccupiedNodes: values.isOn('daemonset-eviction-for-occupied-nodes'),
    ...resourceRanges(values),
  }
}

function requestOptions(values: FlagValues): RequestOptions {
  return {
    isEnabled: values.isOn('enable-provisioning-requests'),
    initialBackoffMs: values.durationMs('provisioning-request-initial-backoff-time'),
    maxBackoffMs: values.durationMs('provisioning-request-max-backoff-time'),
    maxBackoffCacheSize: values.integer('provisioning-request-max-backoff-cache-size'),
    batchProcessing: values.isOn('check-capacity-batch-processing'),
    maxBatchSize: values.integer('check-capacity-provisioning-request-max-batch-size'),
    batchTimeboxMs: values.durationMs('check-capacity-provisioning-request-batch-timebox'),
    processorInstance: values.text('check-capacity-processor-instance'),
  }
}

/** `--max-empty-bulk-delete` in old manifests counts if the flag that replaced it is not given. */
function parallelismOf(values: FlagValues): number {
  const isOld = values.isGiven('max-empty-bulk-delete') && !values.isGiven('max-scale-down-parallelism')
  return values.integer(isOld ? 'max-empty-bulk-delete' : 'max-scale-down-parallelism')
}

function resourceRanges(values: FlagValues): Pick<ScaleDownOptions, 'cores' | 'memory' | 'gpus'> {
  const { cores, memory } = defaultOptions.scaleUp
  const gibibytes = rangeOf(values.text('memory-total'))
  return {
    cores: rangeOf(values.text('cores-total')) ?? cores,
    memory:
      gibibytes === undefined ? memory : { min: gibibytes.min * gibibyte, max: gibibytes.max * gibibyte },
    gpus: values.list('gpu-total').flatMap((text) => gpuRangeOf(text) ?? []),
  }
}

function statusOptions(values: FlagValues): StatusOptions {
  const maxInactivityMs = values.durationMs('max-inactivity')
  const maxFailingTimeMs = values.durationMs('max-failing-time')
  return {
    namespace: values.text('namespace'),
    writeStatusConfigMap: values.isOn('write-status-configmap'),
    statusConfigMapName: values.text('status-config-map-name'),
    emitPerNodeGroupMetrics: values.isOn('emit-per-nodegroup-metrics'),
    recordDuplicatedEvents: values.isOn('record-duplicated-events'),
    maxInactivityMs,
    maxFailingTimeMs,
    maxStartupTimeMs: Math.max(values.durationMs('max-startup-time'), maxInactivityMs, maxFailingTimeMs),
  }
}
