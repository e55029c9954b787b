/** What the Cluster Autoscaler mode needs of a cloud: node groups with a size (cluster-autoscaler.md 1). */
import type { CsiNode, Node, ResourceSlice } from '@tenon/api'
import type { WatchingKubeClient } from '@tenon/kube'
import type { Runtime } from '@tenon/runtime'
import type { CloudRequests } from './cloud-requests.ts'
import type { NodeGroupPreflight, NodeGroupPreflightDependencies, NodeGroupValues } from './preflight.ts'

/** The maximum size of a group without a limit; the largest number in the status ConfigMap. */
export const unboundedGroupSize = 2_147_483_647

/** A node group as last read from its cloud. Plain data; later calls return new objects. */
export interface NodeGroup {
  /** As in metrics, events and the status ConfigMap. */
  readonly id: string
  /** As in `--nodes`. */
  readonly name: string
  readonly minSize: number
  /** {@link unboundedGroupSize} without a limit. */
  readonly maxSize: number
  /** The number of nodes that was last requested. */
  readonly targetSize: number
}

/** A member of a group. `state` is absent if the cloud reports none, or `error` describes the problem. */
export interface GroupInstance {
  /** As in `spec.providerID` of its node. */
  readonly providerId: string
  /**
   * The name with which its node registers, if the cloud reports it. It finds a node without a provider ID.
   */
  readonly nodeName?: string
  readonly state?: 'creating' | 'running' | 'deleting'
  readonly error?: { readonly code: string; readonly message: string }
}

/** The group of a node. */
export type GroupOfNode =
  /** `providerId` is that of its member; only set for a node without `spec.providerID`, and absent if unsure. */
  | { readonly kind: 'group'; readonly groupId: string; readonly providerId?: string }
  /** The node is in no group and is ignored. `reason` is set if a user should know it. */
  | { readonly kind: 'none'; readonly reason?: string }
  /** Unknown at present. `groupId` is set if only the group's own settings or figures are the problem. */
  | { readonly kind: 'unresolved'; readonly reason: string; readonly groupId?: string }

/** A group that cannot be scaled at present, and why. It does not affect other groups. */
export interface GroupFault {
  readonly groupId: string
  /** Names the call, the setting or the missing permission, and the fix if there is one. */
  readonly reason: string
}

/** The instance quota of the account, including other clusters. */
export interface InstanceQuota {
  readonly limit: number
  /** Including requested instances that do not exist yet. */
  readonly used: number
}

/** What a new node of a group will be, as far as the cloud knows. */
export interface NodeExample {
  readonly node: Node
  /** Its CSI drivers and their limits. */
  readonly csiNode?: CsiNode
  /** Its devices, local to the node. */
  readonly resourceSlices?: readonly ResourceSlice[]
}

/** Options of one group; each replaces the flag of the same meaning. Times are in milliseconds. */
export interface NodeGroupOptions {
  readonly scaleDownUtilizationThreshold?: number
  readonly scaleDownGpuUtilizationThreshold?: number
  readonly scaleDownUnneededMs?: number
  readonly scaleDownUnreadyMs?: number
  readonly maxNodeProvisionMs?: number
  readonly maxNodeStartupMs?: number
}

/** Why a group must not be changed at present: `shrinking` it only, or `all` changes. */
export interface GroupHold {
  readonly forbids: 'shrinking' | 'all'
  /** Names the object and what it waits for. */
  readonly reason: string
}

/** An increase that the cloud has accepted. */
export interface Increase {
  readonly targetSize: number
  /**
   * Resolves once the group has its new size; rejects with {@link NodeGroupError} if it does not reach it.
   */
  readonly settled: Promise<void>
}

/** A call of a group failed. The message can be used in an event and contains no secret. */
export class NodeGroupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'NodeGroupError'
  }
}

/** The groups of one cluster. Every promise may reject with {@link NodeGroupError}. */
export interface NodeGroups {
  /** The label of nodes with a GPU; its value is the GPU's type. */
  readonly gpuLabel?: string
  /** Key of the taint of nodes that the cloud has not seen yet: while a node has it, it is starting. */
  readonly startupTaint?: string
  /**
   * Called once, before the first loop. Resolves when groups can be read; what it starts ends with the signal.
   * @throws ProviderSettingError if the cloud cannot be used with these settings.
   */
  start?(signal: AbortSignal): Promise<void>
  /**
   * Begins a loop: forgets what was cached about nodes, reads all known groups again, and drops deleted ones. Rejects
   * if none of them can be read.
   * @returns groups that cannot be read; their last state is kept.
   */
  refresh(signal: AbortSignal): Promise<readonly GroupFault[]>
  /** Groups as of the last refresh, also those without nodes, if the cloud finds groups without their nodes. */
  list(): readonly NodeGroup[]
  group(id: string): NodeGroup | undefined
  /** Only rejects with the signal's reason. Cached until the next refresh. */
  groupOf(node: Node, signal: AbortSignal): Promise<GroupOfNode>
  /**
   * What a new node of a group will be, as far as the cloud knows; only called for a group without any known node.
   * Absent or undefined if the cloud does not know.
   */
  exampleNode?(groupId: string, signal: AbortSignal): Promise<NodeExample | undefined>
  /** Options of a group that differ from the flags. */
  optionsOf?(groupId: string): NodeGroupOptions
  /** Undefined if the group may be changed. */
  holdOf?(groupId: string): GroupHold | undefined
  /** Whether the instance of a node exists; undefined if the cloud does not know the node, or not at present. */
  hasInstance?(node: Node, signal: AbortSignal): Promise<boolean | undefined>
  /** All members, including those without a node. Rejects if one cannot be read. */
  instances(groupId: string, signal: AbortSignal): Promise<readonly GroupInstance[]>
  /**
   * The current limit of all groups together; called before nodes are added, and after the cloud refused some. Absent
   * or undefined if there is none or it is unknown. Only rejects with the signal's reason.
   */
  instanceQuota?(signal: AbortSignal): Promise<InstanceQuota | undefined>
  /**
   * Requests `delta` more nodes. Resolves when the cloud has accepted; if it rejects because of `delta` or the maximum,
   * nothing was requested.
   */
  increaseSize(groupId: string, delta: number, signal: AbortSignal): Promise<Increase>
  /**
   * Removes members and reduces the group's size by their number. Resolves once they are gone; calls for one group run
   * one after the other.
   * @param providerIds of members, which is verified with the cloud.
   * @param options.belowMinimum removes them even if the group gets smaller than its minimum; otherwise it rejects in
   * that case.
   */
  deleteInstances(
    groupId: string,
    providerIds: readonly string[],
    signal: AbortSignal,
    options?: { readonly belowMinimum: boolean },
  ): Promise<void>
  /** Cancels requested nodes that were not created, if the cloud can do that without removing members. */
  decreaseTargetSize(groupId: string, delta: number, signal: AbortSignal): Promise<'done' | 'unsupported'>
}

/** A Kubernetes API as this process is connected to it. */
export interface ConnectedCluster {
  readonly client: WatchingKubeClient
  /** URL of the API server. */
  readonly server: string
}

/** What {@link NodeGroupModule.open} receives. */
export interface NodeGroupDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The cluster of the nodes, and the one in which node groups are objects; often the same. */
  readonly clusters: { readonly workload: ConnectedCluster; readonly management: ConnectedCluster }
  /** Values of `--node-group-auto-discovery`, in order. */
  readonly discoverySpecs: readonly string[]
  /** Values of `--nodes`, in order. */
  readonly nodeGroupSpecs: readonly string[]
  /** `--allow-scale-to-zero`: minimum 0 is valid, and groups in `--nodes` are found without a node. */
  readonly allowsEmptyGroups: boolean
  /**
   * Reduce the size of a group that cannot remove a certain member, though the cloud may then remove another one.
   */
  readonly anyMachinePoolVictim?: boolean
  readonly cloud: CloudRequests
  readonly runtime: Runtime
}

/** Node groups of a cloud, for `tenon cluster-autoscaler`. */
export interface NodeGroupModule {
  /** Set if node groups are objects of a cluster, often another one than that of the nodes. */
  readonly hasManagementCluster?: true
  /** @throws ProviderSettingError for the first missing or invalid setting. */
  open(dependencies: NodeGroupDependencies): NodeGroups
  /** @throws ProviderSettingError for the first missing or invalid setting. */
  preflight(dependencies: NodeGroupPreflightDependencies): NodeGroupPreflight
  /**
   * The node groups that there are, as values of the chart.
   * @param nodes of the workload cluster.
   * @throws ProviderSettingError for the first missing or invalid setting, KubeError if a cluster cannot be read.
   */
  chartValues(
    dependencies: NodeGroupPreflightDependencies,
    nodes: readonly Node[],
    signal: AbortSignal,
  ): Promise<NodeGroupValues>
}
