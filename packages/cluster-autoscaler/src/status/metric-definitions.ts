/** Every metric of Cluster Autoscaler (cluster-autoscaler.md 7.3), without the name prefix. */
import type { CounterName, GaugeName, HistogramName, LoopErrorType } from '../model.ts'

export const metricPrefix = 'cluster_autoscaler_'

interface Definition {
  readonly help: string
  readonly labels?: readonly string[]
}

export interface CounterDefinition extends Definition {
  /** Series that exist at 0 from the start, as label values in order. */
  readonly initial?: readonly (readonly string[])[]
}

export interface HistogramDefinition extends Definition {
  readonly buckets: readonly number[]
}

export const gauges: Readonly<Record<GaugeName, Definition>> = {
  cluster_safe_to_autoscale: { help: 'Whether the cluster is healthy enough to be scaled: 1 if it is.' },
  nodes_count: { help: 'Nodes by state.', labels: ['state'] },
  node_groups_count: { help: 'Node groups that are scaled.', labels: ['node_group_type'] },
  unschedulable_pods_count: {
    help: 'Pods without a node, by what was found out about them.',
    labels: ['type'],
  },
  skipped_pods_count: { help: 'Pods that were left out, by who left them out.', labels: ['requestor'] },
  max_nodes_count: { help: 'Most nodes that all node groups may have.' },
  cluster_cpu_current_cores: { help: 'Cores of the cluster.' },
  cpu_limits_cores: { help: 'Least and most cores of the cluster.', labels: ['direction'] },
  cluster_memory_current_bytes: { help: 'Memory of the cluster.' },
  memory_limits_bytes: { help: 'Least and most memory of the cluster.', labels: ['direction'] },
  last_activity: { help: 'When something was last done, in seconds since 1970.', labels: ['activity'] },
  pending_node_deletions: { help: 'Nodes that are being removed.' },
  unneeded_nodes_count: { help: 'Nodes that scale-down may remove.' },
  unremovable_nodes_count: { help: 'Nodes that scale-down may not remove, by why.', labels: ['reason'] },
  scale_down_in_cooldown: { help: 'Whether scale-down pauses: 1 if it does.' },
  overflowing_controllers_count: {
    help: 'Controllers whose pods are of too many kinds to be looked at together.',
  },
  node_taints_count: { help: 'Taints of nodes by type.', labels: ['type'] },
  inconsistent_instances_migs_count: { help: 'Always 0 on this cloud.' },
  max_node_skip_eval_duration_seconds: { help: 'Longest time for which a node was not looked at.' },
  node_group_min_count: { help: 'Least nodes of a node group.', labels: ['node_group'] },
  node_group_max_count: { help: 'Most nodes of a node group.', labels: ['node_group'] },
  node_group_target_count: {
    help: 'Nodes that a node group was last asked to have.',
    labels: ['node_group'],
  },
  node_group_healthiness: { help: 'Whether a node group is healthy: 1 if it is.', labels: ['node_group'] },
  node_group_backoff_status: {
    help: 'Whether a node group is left alone after failures, by why: 1 if it is.',
    labels: ['node_group', 'reason'],
  },
  provisioning_requests_count: {
    help: 'ProvisioningRequests that are served, by class and by how far they are.',
    labels: ['class', 'state'],
  },
}

/** Gauges of single node groups: only with `--emit-per-nodegroup-metrics`. */
export const groupGauges: ReadonlySet<string> = new Set<GaugeName>([
  'node_group_min_count',
  'node_group_max_count',
  'node_group_target_count',
  'node_group_healthiness',
  'node_group_backoff_status',
])

const gpu = ['gpu_resource_name', 'gpu_name'] as const
const devices = [...gpu, 'dra_drivers'] as const
const errorTypes: readonly LoopErrorType[] = [
  'cloudProviderError',
  'apiCallError',
  'internalError',
  'transientError',
  'configurationError',
  'nodeGroupDoesNotExistError',
  'unexpectedScaleDownStateError',
]
const failureReasons = ['cloudProviderError', 'apiCallError', 'timeout'] as const

export const counters: Readonly<Record<CounterName, CounterDefinition>> = {
  errors_total: { help: 'Loops that failed.', labels: ['type'], initial: errorTypes.map((type) => [type]) },
  scaled_up_nodes_total: { help: 'Nodes that node groups were made larger by.', labels: devices },
  failed_scale_ups_total: {
    help: 'Failed scale-ups.',
    labels: ['reason', ...devices],
    initial: failureReasons.map((reason) => [reason, '', '', '']),
  },
  failed_node_creations_total: {
    help: 'Nodes that failed scale-ups did not bring.',
    labels: ['reason'],
    initial: failureReasons.map((reason) => [reason]),
  },
  scaled_down_nodes_total: {
    help: 'Nodes that were removed.',
    labels: ['reason', ...devices],
    initial: ['underutilized', 'empty', 'unready'].map((reason) => [reason, '', '', '']),
  },
  evicted_pods_total: {
    help: 'Pods that were evicted.',
    labels: ['eviction_result'],
    initial: [['succeeded'], ['failed']],
  },
  old_unregistered_nodes_removed_count: { help: 'Instances without a node that were removed.' },
  skipped_scale_events_count: {
    help: 'Scalings that a limit of the cluster forbade.',
    labels: ['direction', 'reason'],
    initial: ['up', 'down'].flatMap((direction) =>
      ['CpuResourceLimit', 'MemoryResourceLimit'].map((reason) => [direction, reason]),
    ),
  },
  created_node_groups_total: { help: 'Node groups that were made: none.', labels: ['group_type'] },
  deleted_node_groups_total: { help: 'Node groups that were deleted: none.', labels: ['group_type'] },
  scaled_up_gpu_nodes_total: { help: 'Deprecated: see scaled_up_nodes_total.', labels: gpu },
  failed_gpu_scale_ups_total: { help: 'Deprecated: see failed_scale_ups_total.', labels: ['reason', ...gpu] },
  scaled_down_gpu_nodes_total: {
    help: 'Deprecated: see scaled_down_nodes_total.',
    labels: ['reason', ...gpu],
  },
}

export const histograms: Readonly<Record<HistogramName, HistogramDefinition>> = {
  function_duration_seconds: {
    help: 'Time taken by parts of the loop.',
    labels: ['function'],
    buckets: exponential(0.1, (1800 / 0.1) ** (1 / 149), 150),
  },
  binpacking_heterogeneity: {
    help: 'Kinds of pods in one estimate.',
    labels: ['instance_type', 'cpu_count', 'namespace_count'],
    buckets: exponential(1, 2, 6),
  },
  node_removal_latency_seconds: {
    help: 'Time from a node being unneeded until it was removed, or needed again.',
    labels: ['deleted', 'delay_reason'],
    buckets: exponential(1, 1.5, 19),
  },
}

/** Quantiles over an hour of the {@link histograms} entry `function_duration_seconds`. */
export const durationSummary = {
  name: 'function_duration_quantile_seconds',
  help: 'Quantiles of the time taken by parts of the loop in the last hour.',
  labels: ['function'],
  percentiles: [0.5, 0.9, 0.99],
} as const

/** For dashboards that use it. */
export const draMismatches = {
  name: 'dra_node_template_resources_mismatch',
  help: 'Devices that nodes have otherwise than expected.',
  labels: ['driver', 'mismatch_type'],
} as const

function exponential(start: number, factor: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, power) => Number((start * factor ** power).toPrecision(12)))
}
