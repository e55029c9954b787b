/** Everything a scheduling decision may depend on. Immutable; the engine changes none of it. */
import type {
  InstanceType,
  NodePool,
  NodeSelectorRequirement,
  LaunchScope,
  Pod,
  PodSpec,
  Resources,
  Taint,
} from '@tenon/api'
import type { HostPort } from './host-ports.ts'
import type { DevicesInput } from './devices.ts'

/** Names of volume claims (`namespace/name`) by CSI driver. */
export type VolumeUse = Readonly<Record<string, readonly string[]>>

/** A node, or a launched claim whose node has not come yet (scheduling.md 6.5, "Node view"). */
export interface NodeInput {
  /** Node name, or the claim's until the node is registered. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Taints that count: of a starting node, without start-up and ephemeral ones. */
  readonly taints: readonly Taint[]
  readonly initialized: boolean
  /** Allocatable less the requests of the pods bound to it. */
  readonly available: Resources
  /** Requests of the daemon pods already bound to it. */
  readonly daemonRequests: Resources
  readonly usedHostPorts: readonly HostPort[]
  /** Most volumes of a CSI driver that can be attached; drivers that are not here have no limit. */
  readonly volumeLimits?: Readonly<Record<string, number>>
  /** Volume claims of the pods bound to it. */
  readonly volumesInUse?: VolumeUse
  /** Set while the node is under `consolidateAfter`: pods of candidates may not come (scheduling.md 14). */
  readonly refusesCandidatePods?: boolean
  /** Set while it is doubtful that the node will ever take pods: only those planned for it may come. */
  readonly takesOnlyPlanned?: boolean
}

/**
 * How many volumes of each CSI driver a new node will attach, as nodes that exist tell. A driver of which nothing is
 * known has no limit.
 */
export interface AttachLimits {
  /** By name of the instance type, by driver. */
  readonly byType: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** By driver, for types whose nodes have not told. */
  readonly others: Readonly<Record<string, number>>
}

/** A NodePool that may launch, with what its provider offers for it. */
export interface PoolInput {
  readonly nodePool: NodePool
  readonly instanceTypes: readonly InstanceType[]
  /** Labels and taints of its nodes besides those of its template, which they do not contradict. */
  readonly defaults?: { readonly labels: Readonly<Record<string, string>>; readonly taints: readonly Taint[] }
  /** Capacity of the pool's nodes now, with `nodes` as their count. */
  readonly usage: Resources
  /** What claims have reserved of the pool's limits that are not part of its usage yet; absent = nothing. */
  readonly reserved?: Resources
}

/** A DaemonSet, by the pod it would put on a node. */
export interface DaemonInput {
  readonly name: string
  readonly namespace: string
  /** Labels of its pods. */
  readonly labels: Readonly<Record<string, string>>
  readonly spec: PodSpec
}

/** How strictly wishes are taken, and what bounds a claim. */
export interface SchedulingPolicy {
  readonly preferences: 'Respect' | 'Ignore'
  readonly minValues: 'Strict' | 'BestEffort'
  /** Label keys that may be left open by pools and claims. */
  readonly wellKnownLabels: ReadonlySet<string>
  /** Most instance types named in one claim. */
  readonly maxInstanceTypes: number
  /**
   * Reserved capacity (scheduling.md 11.1): the label that holds reservation ids, and whether a pod
   * waits for the next pass when only used-up reservations would suit it. Absent = not in use.
   */
  readonly reservations?: { readonly label: string; readonly mode: 'Strict' | 'Fallback' }
  /**
   * `provisioning` unless set. In `disruption`, a pod that would rely on a node that is not
   * initialized is a failure (scheduling.md 14).
   */
  readonly simulation?: 'provisioning' | 'disruption'
  /**
   * Whether to look for a cheaper set of new nodes than first fit finds. `planned`: pods will be
   * steered to the node they are planned for; `free`: the plan must hold for any placement the
   * Kubernetes scheduler may choose. Absent = first fit alone.
   */
  readonly improvement?: 'planned' | 'free'
}

/** A node as topology rules see it. */
export interface TopologyNode {
  readonly hostname: string
  readonly labels: Readonly<Record<string, string>>
  /** The Node object's own taints. */
  readonly taints: readonly Taint[]
  /** Whether pods may be placed on it in this simulation. */
  readonly isCandidate: boolean
}

/** Where the pods of the cluster are, for spreading, affinity and anti-affinity (scheduling.md 9). */
export interface TopologyInput {
  /** Bound pods of the whole cluster. */
  readonly pods: readonly Pod[]
  /** By Node name; nodes that are going away are among them. */
  readonly nodes: ReadonlyMap<string, TopologyNode>
  /** Labels of every namespace. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** What a pod's volumes ask of its node (scheduling.md 8). */
export interface PodVolumes {
  /** One of these must hold of the node; none = anywhere. They survive every relaxation. */
  readonly alternatives: readonly (readonly NodeSelectorRequirement[])[]
  /** Volume claims that count against a node's attach limits. */
  readonly claims: VolumeUse
  /** Claims (`namespace/name`) that no other pod of the cluster may use at the same time (ReadWriteOncePod). */
  readonly exclusive?: readonly string[]
  /** Set when a look-up failed: no existing node can be judged (scheduling.md 8.1). */
  readonly unknownClaims?: boolean
}

/**
 * Where a pod comes from: not bound yet, on a node that is going away, or on a disruption candidate; there it
 * may still be `starting`, and then goes anywhere. Others stand for room and are made by nobody. One of a `buffer` is
 * placed after all others, and takes nothing from them; one of a `request` is placed as if it were pending, and one of
 * a `check` too, but on nodes that are there or on their way only.
 */
export type PodOrigin = 'pending' | 'deleting' | 'candidate' | 'starting' | 'buffer' | 'request' | 'check'

/**
 * Pods that run together or not at all (gangs.md 7.1). Its members are among the pods of the input.
 */
export interface PodGroupInput {
  /** Unique; names the kind's API group, the namespace and the name. */
  readonly id: string
  /** UIDs of the members that have no node and may get one. A pod is in one group at most. */
  readonly members: readonly string[]
  /** Fewer members than this run nothing; 0 = every member is a pod like others. */
  readonly minCount: number
  /** Members that have a node, neither ended nor ending. */
  readonly bound: number
  /** The higher comes first. */
  readonly priority: number
  /** When the group was made, as RFC 3339; the older comes first. */
  readonly createdAt: string
  /** All members go to one domain of this node label; `domain` is set when bound members fix it. Absent = anywhere. */
  readonly topology?: { readonly key: string; readonly domain?: string }
}

/** Everything a scheduling decision depends on. */
export interface SchedulingInput {
  /** Pods to place: pending ones and those on nodes that are going away. */
  readonly pods: readonly Pod[]
  readonly nodes: readonly NodeInput[]
  readonly pools: readonly PoolInput[]
  readonly daemons: readonly DaemonInput[]
  readonly topology: TopologyInput
  readonly policy: SchedulingPolicy
  /** By pod UID; pods that are not here have no volumes that matter. */
  readonly volumes?: ReadonlyMap<string, PodVolumes>
  readonly attachLimits?: AttachLimits
  /** Absent, pods that use ResourceClaims find no place. */
  readonly devices?: DevicesInput
  /** By pod UID; pods that are not here are pending. */
  readonly origins?: ReadonlyMap<string, PodOrigin>
  /**
   * By pod UID the node that an earlier decision launched, or kept, for the pod. As long as it still
   * takes the pod there it stays: a plan is not made again while its nodes are on their way.
   */
  readonly planned?: ReadonlyMap<string, string>
  /** What failed lately: one launch is to find out whether each can be bought again. Absent = none. */
  readonly offeringsOnTrial?: readonly LaunchScope[]
  /** Absent = none. */
  readonly podGroups?: readonly PodGroupInput[]
}
