/** What one loop sees and tells: shared by scale-up and scale-down. Plain data, but for the snapshot. */
import type {
  ConfigMap,
  DaemonSet,
  KubeObject,
  Node,
  Pod,
  PodDisruptionBudget,
  PodTemplate,
  ProvisioningRequest,
  SelectorLookups,
} from '@tenon/api'
import type { Labels, Snapshot, VolumeIndex } from '@tenon/filters'
import type { GroupInstance, NodeGroup } from '@tenon/provider'
import type { DeviceUse } from './scale-down/nodes/device-use.ts'
import type { Logger } from '@tenon/runtime'

/** What a new node of a group will be: the node and the pods that come with it (cluster-autoscaler.md 2.6). */
export interface NodeTemplate {
  readonly node: Node
  readonly pods: readonly Pod[]
}

/** A controller of pods, as far as drain rules look at it. Absent replicas: it has none (a DaemonSet, a Job). */
export interface PodController {
  readonly replicas?: number
}

/** Look-ups of other objects, as the caches have them at the start of the loop. */
export interface Lookups {
  /** `kind` is as in the owner reference; undefined = there is no such object. */
  readonly controllerOf: (kind: string, namespace: string, name: string) => PodController | undefined
  readonly disruptionBudgets: readonly PodDisruptionBudget[]
  readonly daemonSets: readonly DaemonSet[]
  /** By node name; of nodes without devices, nothing. */
  readonly deviceUse: ReadonlyMap<string, DeviceUse>
}

/** The cluster as the caches have it. Every call gives what they hold now. */
export interface ClusterCache extends Lookups {
  nodes(): readonly Node[]
  /** All pods, those that have ended among them or not. */
  pods(): readonly Pod[]
  /** Labels of every namespace. */
  namespaces(): ReadonlyMap<string, Labels>
  volumes(): VolumeIndex
  /** What tells which pods are one application; followed only where default constraints need it. */
  readonly applications: SelectorLookups | undefined
  /** Undefined when there is none, or it may not be read. */
  configMap(namespace: string, name: string): ConfigMap | undefined
  /** Undefined where they are not asked for, not served, or not read yet. */
  readonly requests: RequestObjects | undefined
}

/** ProvisioningRequests and what their pods are made from. */
export interface RequestObjects {
  list(): readonly ProvisioningRequest[]
  template(namespace: string, name: string): PodTemplate | undefined
}

/** The group of each node, resolved before the loop decides anything. */
export interface NodeGroupIndex {
  /** Groups that can be scaled and those that have a fault, by id. */
  readonly groups: ReadonlyMap<string, NodeGroup>
  /** By node name; nodes that are in none, or of which it cannot be told, are absent. */
  readonly groupOf: ReadonlyMap<string, string>
  /** By node name: why its group cannot be told now. */
  readonly unresolved: ReadonlyMap<string, string>
  /** By group id: why it cannot be scaled now. */
  readonly faults: ReadonlyMap<string, string>
}

/** What one loop decides on. */
export interface LoopView {
  readonly nowMs: number
  /** Registered nodes as the API server has them; a node with a startup taint is shown as not ready. */
  readonly nodes: readonly Node[]
  readonly index: NodeGroupIndex
  /** By group id; groups of which no node was ever seen are absent. */
  readonly templates: ReadonlyMap<string, NodeTemplate>
  /** Members by group id; a group whose members cannot be read is absent. */
  readonly instances: ReadonlyMap<string, readonly GroupInstance[]>
  /** Registered and upcoming nodes with their pods. */
  readonly snapshot: Snapshot
  readonly lookups: Lookups
}

export type EventType = 'Normal' | 'Warning'

/** Records events (cluster-autoscaler.md 7.2). Limits how often the same is told. */
export interface EventSink {
  /** About the whole: on the status ConfigMap, and nowhere while that is not written. */
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

/** Metrics (cluster-autoscaler.md 7.3); names are without their prefix `cluster_autoscaler_`. */
export interface MetricSink {
  set(name: GaugeName, value: number, labels?: MetricLabels): void
  /** Forgets every series of a gauge, before those that hold now are set. */
  clear(name: GaugeName): void
  add(name: CounterName, by: number, labels?: MetricLabels): void
  observe(name: HistogramName, value: number, labels?: MetricLabels): void
}

/** Where actions are reported. */
export interface Outlets {
  readonly events: EventSink
  readonly metrics: MetricSink
  readonly logger: Logger
}

/** Writes to the cluster. A dry run has one that writes nothing. */
export interface ClusterWriter {
  /**
   * Replaces a node by what `change` makes of the newest version, again when another writer was faster: every 750 ms
   * for up to 5 s (cluster-autoscaler.md 6.6).
   * @param change answers undefined when nothing needs to be written.
   * @returns what was written, or was there; undefined when there is no such node.
   */
  updateNode(
    name: string,
    change: (node: Node) => Node | undefined,
    signal: AbortSignal,
  ): Promise<Node | undefined>
  /** Resolves when the server has accepted, or there is no such pod. Rejects with a KubeError otherwise. */
  evict(pod: Pod, graceSeconds: number, signal: AbortSignal): Promise<void>
  /**
   * Tells the scheduler which node a pod should go to, as long as the pod is as it was read. Rejects with a KubeError:
   * `conflict` when it has changed.
   */
  nominate(pod: Pod, node: string, signal: AbortSignal): Promise<void>
  /**
   * Writes the conditions of a request, as long as it is as it was read.
   * @returns what was written; undefined when it has changed, or is gone. Rejects with a KubeError otherwise.
   */
  writeRequestConditions(
    request: ProvisioningRequest,
    signal: AbortSignal,
  ): Promise<ProvisioningRequest | undefined>
  /** Resolves when it is gone, or has changed meanwhile. Rejects with a KubeError otherwise. */
  deleteRequest(request: ProvisioningRequest, signal: AbortSignal): Promise<void>
}

/** How a loop ended: a type of `errors_total`, or not in an error. */
export type LoopErrorType =
  | 'cloudProviderError'
  | 'apiCallError'
  | 'internalError'
  | 'transientError'
  | 'configurationError'
  | 'nodeGroupDoesNotExistError'
  | 'unexpectedScaleDownStateError'
