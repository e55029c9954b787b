/** Data of one loop that scale-up and scale-down share. Plain data, except the snapshot. */
import type {
  CapacityQuota,
  ConfigMap,
  CsiNode,
  DaemonSet,
  DeviceClass,
  KubeObject,
  LabelSelector,
  Node,
  Pod,
  PodDisruptionBudget,
  PodTemplate,
  ProvisioningRequest,
  ResourceClaim,
  Resources,
  ResourceSlice,
  SelectorLookups,
} from '@tenon/api'
import type { Labels, Snapshot, VolumeIndex } from '@tenon/filters'
import type { GroupHold, GroupInstance, NodeGroup, NodeGroupOptions } from '@tenon/provider'
import type { DeviceUse } from './scale-down/nodes/device-use.ts'
import type { Logger } from '@tenon/runtime'

/** A new node of a group, with the pods that run on it from the start (cluster-autoscaler.md 2.6). */
export interface NodeTemplate {
  readonly node: Node
  readonly pods: readonly Pod[]
  /** Its CSI drivers, as the cloud or a node of the group has them. Absent = assumed to have all. */
  readonly csiNode?: CsiNode
  /** Its devices. */
  readonly resourceSlices?: readonly ResourceSlice[]
}

/** Devices and claims of the cluster. */
export interface DeviceObjects {
  readonly slices: readonly ResourceSlice[]
  readonly claims: readonly ResourceClaim[]
  /** Undefined if they cannot be read: then claims do not decide where a pod fits. */
  readonly classes: readonly DeviceClass[] | undefined
}

/** A pod's controller, with the fields for drain rules. A DaemonSet or Job has no replicas. */
export interface PodController {
  readonly replicas?: number
}

/** Lookups of other objects in the caches, as of the start of the loop. */
export interface Lookups {
  /** `kind` as in the owner reference; undefined if the object does not exist. */
  readonly controllerOf: (kind: string, namespace: string, name: string) => PodController | undefined
  readonly disruptionBudgets: readonly PodDisruptionBudget[]
  readonly daemonSets: readonly DaemonSet[]
  /** By node name; nodes without devices are absent. */
  readonly deviceUse: ReadonlyMap<string, DeviceUse>
}

/** The cluster in the caches. Each call returns the current content. */
export interface ClusterCache extends Lookups {
  nodes(): readonly Node[]
  /** All pods, including finished ones. */
  pods(): readonly Pod[]
  /** Labels of every namespace. */
  namespaces(): ReadonlyMap<string, Labels>
  volumes(): VolumeIndex
  /** Undefined if slices or claims cannot be read. */
  devices(): DeviceObjects | undefined
  /** To find out which pods belong to one application. Only set if default constraints need it. */
  readonly applications: SelectorLookups | undefined
  /** Undefined if it does not exist or cannot be read. */
  configMap(namespace: string, name: string): ConfigMap | undefined
  /** Undefined if disabled, not served, or not read yet. */
  readonly requests: RequestObjects | undefined
  /** Undefined if not served, not readable, or not read yet. */
  readonly quotas: readonly CapacityQuota[] | undefined
}

/** ProvisioningRequests and their PodTemplates. */
export interface RequestObjects {
  list(): readonly ProvisioningRequest[]
  template(namespace: string, name: string): PodTemplate | undefined
}

/** The group of each node, resolved before the loop decides anything. */
export interface NodeGroupIndex {
  /** Groups by id, including those with a fault. */
  readonly groups: ReadonlyMap<string, NodeGroup>
  /** By node name; absent for nodes without a group or with an unknown one. */
  readonly groupOf: ReadonlyMap<string, string>
  /** By node name: why its group is unknown at present. */
  readonly unresolved: ReadonlyMap<string, string>
  /** By group id: why it cannot be scaled at present. */
  readonly faults: ReadonlyMap<string, string>
  /** By group id: what must not be changed at present; other groups are absent. */
  readonly holds: ReadonlyMap<string, GroupHold>
  /** By group id: options that replace flags. */
  readonly options: ReadonlyMap<string, NodeGroupOptions>
  /** By node name: whether its instance exists; absent if the cloud does not tell. */
  readonly hasInstance: ReadonlyMap<string, boolean>
}

export const noGroups: NodeGroupIndex = {
  groups: new Map(),
  groupOf: new Map(),
  unresolved: new Map(),
  faults: new Map(),
  holds: new Map(),
  options: new Map(),
  hasInstance: new Map(),
}

/** The input of one loop. */
export interface LoopView {
  readonly nowMs: number
  /** Registered nodes as in the API server, but nodes with a startup taint, or without their GPUs, are not ready. */
  readonly nodes: readonly Node[]
  readonly index: NodeGroupIndex
  /** By group id; absent for groups without a known node. */
  readonly templates: ReadonlyMap<string, NodeTemplate>
  /** Members by group id; absent if they cannot be read. */
  readonly instances: ReadonlyMap<string, readonly GroupInstance[]>
  /** Registered and upcoming nodes with their pods. */
  readonly snapshot: Snapshot
  readonly lookups: Lookups
  /** Enforced CapacityQuotas, used by all nodes that exist or may still come. */
  readonly quotas: readonly QuotaUse[]
}

/** `cpu`, `memory`, or a type of GPU. */
export type LimitedResource = string

/** An enforced quota. `limits` and `used` have the same resources; `nodes` is the number of nodes. */
export interface QuotaUse {
  readonly name: string
  readonly selector: LabelSelector
  readonly limits: Resources
  readonly used: Resources
}

/** A limit that more nodes would exceed: `cluster-wide`, or the name of a CapacityQuota, which says what is left. */
export interface ExceededQuota {
  readonly quota: string
  readonly resources: readonly { readonly name: LimitedResource; readonly left?: string }[]
}

/** Limits of the cluster as in metrics; those of GPUs have no label there. */
export const limitReasons: ReadonlyMap<LimitedResource, string> = new Map([
  ['cpu', 'CpuResourceLimit'],
  ['memory', 'MemoryResourceLimit'],
])

export type EventType = 'Normal' | 'Warning'

/** Records events, and limits repetitions (cluster-autoscaler.md 7.2). */
export interface EventSink {
  /** An event about the whole autoscaler, on the status ConfigMap. Dropped if there is none. */
  status(type: EventType, reason: string, message: string): void
  object(object: KubeObject, type: EventType, reason: string, message: string): void
}

export type GaugeName =
  | 'cluster_safe_to_autoscale'
  | 'nodes_count'
  | 'node_groups_count'
  | 'unschedulable_pods_count'
  | 'skipped_pods_count'
  | 'max_nodes_count'
  | 'cluster_cpu_current_cores'
  | 'cpu_limits_cores'
  | 'cluster_memory_current_bytes'
  | 'memory_limits_bytes'
  | 'last_activity'
  | 'pending_node_deletions'
  | 'unneeded_nodes_count'
  | 'unremovable_nodes_count'
  | 'scale_down_in_cooldown'
  | 'overflowing_controllers_count'
  | 'node_taints_count'
  | 'inconsistent_instances_migs_count'
  | 'max_node_skip_eval_duration_seconds'
  | 'node_group_min_count'
  | 'node_group_max_count'
  | 'node_group_target_count'
  | 'node_group_healthiness'
  | 'node_group_backoff_status'
  | 'provisioning_requests_count'

export type CounterName =
  | 'errors_total'
  | 'scaled_up_nodes_total'
  | 'failed_scale_ups_total'
  | 'failed_node_creations_total'
  | 'scaled_down_nodes_total'
  | 'evicted_pods_total'
  | 'old_unregistered_nodes_removed_count'
  | 'skipped_scale_events_count'
  | 'created_node_groups_total'
  | 'deleted_node_groups_total'
  | 'scaled_up_gpu_nodes_total'
  | 'failed_gpu_scale_ups_total'
  | 'scaled_down_gpu_nodes_total'

export type HistogramName =
  | 'function_duration_seconds'
  | 'binpacking_heterogeneity'
  | 'node_removal_latency_seconds'

export type MetricLabels = Readonly<Record<string, string>>

/** Metrics (cluster-autoscaler.md 7.3), by name without the prefix `cluster_autoscaler_`. */
export interface MetricSink {
  set(name: GaugeName, value: number, labels?: MetricLabels): void
  /** Removes every series of a gauge before current ones are set. */
  clear(name: GaugeName): void
  add(name: CounterName, by: number, labels?: MetricLabels): void
  observe(name: HistogramName, value: number, labels?: MetricLabels): void
}

/** Where actions are reported. */
export interface Reporting {
  readonly events: EventSink
  readonly metrics: MetricSink
  readonly logger: Logger
}

/** Writes to the cluster. A dry run uses one that writes nothing. */
export interface ClusterWriter {
  /**
   * Updates the newest version of a node with `change`; on conflicts every 750 ms for up to 5 s (cluster-autoscaler.md
   * 6.6).
   * @param change returns undefined if nothing needs to be written.
   * @returns the written or existing node; undefined if it does not exist.
   */
  updateNode(
    name: string,
    change: (node: Node) => Node | undefined,
    signal: AbortSignal,
  ): Promise<Node | undefined>
  /** Resolves when the server has accepted, or the pod does not exist. Otherwise rejects with a KubeError. */
  evict(pod: Pod, graceSeconds: number, signal: AbortSignal): Promise<void>
  /**
   * Nominates a pod for a node, unless the pod has changed since it was read. Rejects with a KubeError: `conflict` if
   * it has.
   */
  nominate(pod: Pod, node: string, signal: AbortSignal): Promise<void>
  /**
   * Writes conditions of a request, unless it has changed since it was read.
   * @returns the written request; undefined if it has changed or is gone. Otherwise rejects with a KubeError.
   */
  writeRequestConditions(
    request: ProvisioningRequest,
    signal: AbortSignal,
  ): Promise<ProvisioningRequest | undefined>
  /** Writes the status of a quota, unless it has changed or is gone. Otherwise rejects with a KubeError. */
  writeQuotaStatus(quota: CapacityQuota, signal: AbortSignal): Promise<void>
  /** Resolves when it is deleted, or has changed meanwhile. Otherwise rejects with a KubeError. */
  deleteRequest(request: ProvisioningRequest, signal: AbortSignal): Promise<void>
}

/** The error type of a loop in `errors_total`. */
export type LoopErrorType =
  | 'cloudProviderError'
  | 'apiCallError'
  | 'internalError'
  | 'transientError'
  | 'configurationError'
  | 'nodeGroupDoesNotExistError'
  | 'unexpectedScaleDownStateError'
