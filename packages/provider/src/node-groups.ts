/** What the Cluster Autoscaler mode asks of a cloud: node groups that have a size (cluster-autoscaler.md 1). */
import type { Node } from '@tenon/api'
import type { Runtime } from '@tenon/runtime'
import type { CloudRequests } from './cloud-requests.ts'

/** The maximum size of a group that nothing bounds; the largest that the status ConfigMap can tell. */
export const unboundedGroupSize = 2_147_483_647

/** A node group as its cloud last told of it. Plain data; a later call gives another one. */
export interface NodeGroup {
  /** As in metrics, events and the status ConfigMap. */
  readonly id: string
  /** As users name it in `--nodes`. */
  readonly name: string
  readonly minSize: number
  /** {@link unboundedGroupSize} when nothing bounds it. */
  readonly maxSize: number
  /** How many nodes the cloud was last asked for. */
  readonly targetSize: number
}

/** A member of a group. `state` is absent when the cloud tells none, or `error` says what is wrong. */
export interface GroupInstance {
  /** As in `spec.providerID` of its node. */
  readonly providerId: string
  /** The name that its node registers with, when the cloud tells it: finds a node that has no provider ID yet. */
  readonly nodeName?: string
  readonly state?: 'creating' | 'running' | 'deleting'
  readonly error?: { readonly code: string; readonly message: string }
}

/** What group a node is in. */
export type GroupOfNode =
  | { readonly kind: 'group'; readonly groupId: string }
  /** It is in none, and is left alone. `reason` is there when a user should hear of it. */
  | { readonly kind: 'none'; readonly reason?: string }
  /** It cannot be told now. `groupId` is there when only the group's own settings or figures are at fault. */
  | { readonly kind: 'unresolved'; readonly reason: string; readonly groupId?: string }

/** A group that cannot be scaled now, and why. Others are not concerned. */
export interface GroupFault {
  readonly groupId: string
  /** Names the call, the setting or the missing right, and the fix where there is one. */
  readonly reason: string
}

/** How many instances the account may have, those of other clusters included. */
export interface InstanceQuota {
  readonly limit: number
  /** With those that were asked for and are not there yet. */
  readonly used: number
}

/** An increase that the cloud has taken on. */
export interface Increase {
  readonly targetSize: number
  /** Resolves once the group runs at its new size; rejects with {@link NodeGroupError} when it does not get there. */
  readonly settled: Promise<void>
}

/** A call of a group failed. The message is fit for an event and holds no secret. */
export class NodeGroupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'NodeGroupError'
  }
}

/** The groups of one cluster. Every promise may reject with {@link NodeGroupError}. */
export interface NodeGroups {
  /**
   * Begins a loop: forgets what was remembered of nodes, reads the groups that are known anew, and drops those that
   * are gone. Rejects when none of the groups that are known can be read.
   * @returns those that cannot be read; what they were last is kept.
   */
  refresh(signal: AbortSignal): Promise<readonly GroupFault[]>
  /** Those that nodes were found in, by {@link groupOf}, and that were not gone at the last refresh. */
  list(): readonly NodeGroup[]
  group(id: string): NodeGroup | undefined
  /** Never rejects but for the signal. Remembered until the next refresh. */
  groupOf(node: Node, signal: AbortSignal): Promise<GroupOfNode>
  /**
   * What a new node of a group will be, as far as the cloud tells; asked only for a group of which no node was ever
   * seen. Absent, or resolves to undefined, where the cloud does not tell.
   */
  exampleNode?(groupId: string, signal: AbortSignal): Promise<Node | undefined>
  /** All members, also those without a node. Rejects when one of them cannot be read. */
  instances(groupId: string, signal: AbortSignal): Promise<readonly GroupInstance[]>
  /**
   * What bounds all groups together, as it is now; asked before nodes are added, and after the cloud refused some.
   * Absent, or resolves to undefined, where nothing does or the cloud does not tell. Rejects only for the signal.
   */
  instanceQuota?(signal: AbortSignal): Promise<InstanceQuota | undefined>
  /**
   * Asks for `delta` more nodes.
   * Resolves when the cloud has taken it on; nothing was asked for when it rejects because of `delta` or the maximum.
   */
  increaseSize(groupId: string, delta: number, signal: AbortSignal): Promise<Increase>
  /**
   * Removes members and makes the group smaller by as many. Resolves once they are gone; calls for one group are
   * carried out one after the other.
   * @param providerIds of members: that they are is asked of the cloud first.
   * @param options.belowMinimum removes them even if the group gets smaller than its minimum; else it rejects then.
   */
  deleteInstances(
    groupId: string,
    providerIds: readonly string[],
    signal: AbortSignal,
    options?: { readonly belowMinimum: boolean },
  ): Promise<void>
  /** Takes back nodes that were asked for and did not come, if the cloud can do that without removing members. */
  decreaseTargetSize(groupId: string, delta: number, signal: AbortSignal): Promise<'done' | 'unsupported'>
}

/** What {@link NodeGroupModule.open} is given. */
export interface NodeGroupDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Values of `--nodes`, in their order. */
  readonly nodeGroupSpecs: readonly string[]
  /** `--allow-scale-to-zero`: minimum 0 is admitted, and groups that `--nodes` names are found without a node. */
  readonly allowsEmptyGroups: boolean
  readonly cloud: CloudRequests
  readonly runtime: Runtime
}

/** Node groups of a cloud, for `tenon cluster-autoscaler`. */
export interface NodeGroupModule {
  /** @throws ProviderSettingError for the first setting that is missing or wrong. */
  open(dependencies: NodeGroupDependencies): NodeGroups
}
