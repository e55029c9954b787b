/** The input of a scheduling decision. The engine does not change it. */
import type {
  InstanceType,
  LabelSelector,
  NodePool,
  NodeSelectorRequirement,
  LaunchScope,
  Pod,
  PodSpec,
  ResizedRequests,
  Resources,
  ScoredBalance,
  Taint,
} from '@tenon/api'
import type { HostPort } from './host-ports.ts'
import type { DevicesInput } from './devices.ts'

/** Names of volume claims (`namespace/name`) by CSI driver. */
export type VolumeUse = Readonly<Record<string, readonly string[]>>

/** A node, or a launched claim without a node yet (scheduling.md 6.5, "Node view"). */
export interface NodeInput {
  /** Name of the Node, or of the NodeClaim until its node is registered. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Taints that pods must tolerate; for a starting node without startup and ephemeral taints. */
  readonly taints: readonly Taint[]
  readonly initialized: boolean
  /** Features that its kubelet declares, or will declare as far as that is known. Absent = none. */
  readonly declaredFeatures?: readonly string[]
  /**
   * Allocatable minus the requests of bound pods. A resource that the node does not have is absent, even if devices serve
   * it to bound pods.
   */
  readonly available: Resources
  /** Absent unless the policy has a `fitScoring`. */
  readonly allocatable?: Resources
  /** Requests of bound daemon pods. */
  readonly daemonRequests: Resources
  readonly usedHostPorts: readonly HostPort[]
  /** Attach limits by CSI driver; drivers that are not listed have no limit. */
  readonly volumeLimits?: Readonly<Record<string, number>>
  /** Volume claims of bound pods. */
  readonly volumesInUse?: VolumeUse
  /** CSI drivers that pods with their volumes need and that the node lacks (scheduling.md 8.1). */
  readonly missingDrivers?: readonly string[]
  /** Whether the node is under `consolidateAfter`, so that pods of candidates may not move there (scheduling.md 14). */
  readonly refusesCandidatePods?: boolean
  /** Whether the node may never become ready, so that only pods planned for it may be placed there. */
  readonly takesOnlyPlanned?: boolean
}

/**
 * Attach limits of new nodes by CSI driver, learned from existing nodes. A driver of which nothing is known has no limit.
 */
export interface AttachLimits {
  /** By name of the instance type, by driver. */
  readonly byType: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** By driver, for types without such a node. */
  readonly others: Readonly<Record<string, number>>
}

/** Names of CSI drivers, by name of the instance type; types that are not listed lack none. */
export type MissingDrivers = Readonly<Record<string, readonly string[]>>

/** A NodePool that may launch nodes, with its instance types. */
export interface PoolInput {
  readonly nodePool: NodePool
  readonly instanceTypes: readonly InstanceType[]
  /** Labels and taints that its nodes get in addition to those of the template. */
  readonly defaults?: { readonly labels: Readonly<Record<string, string>>; readonly taints: readonly Taint[] }
  /** Features that kubelets of new nodes will declare, as far as that is known. Absent = none. */
  readonly declaredFeatures?: readonly string[]
  /** Capacity of the pool's existing nodes; `nodes` is their number. */
  readonly usage: Resources
  /**
   * CSI drivers that pods with their volumes need and that new nodes will lack, by name of the instance type
   * (scheduling.md 8.1).
   */
  readonly missingDrivers?: MissingDrivers
  /** Shares of the limits of claims that the usage does not include yet; absent = none. */
  readonly reserved?: Resources
}

/** A ceiling over all nodes that a selector matches, whatever their NodePool (quotas.md 1). */
export interface QuotaInput {
  readonly name: string
  /** An empty one matches all nodes. */
  readonly selector: LabelSelector
  readonly limits: Resources
  /** Capacity of the nodes that match, and of those on their way that may match; `nodes` is their number. */
  readonly usage: Resources
  /** Shares of claims that the usage does not include yet; absent = none. */
  readonly reserved?: Resources
}

/** A DaemonSet, with its pod template. */
export interface DaemonInput {
  readonly name: string
  readonly namespace: string
  /** Labels of its pods. */
  readonly labels: Readonly<Record<string, string>>
  readonly spec: PodSpec
}

/** The policy of a decision. */
export interface SchedulingPolicy {
  readonly preferences: 'Respect' | 'Ignore'
  readonly minValues: 'Strict' | 'BestEffort'
  /** Label keys that pools and claims may leave undefined. */
  readonly wellKnownLabels: ReadonlySet<string>
  /** The maximum number of instance types in one claim. */
  readonly maxInstanceTypes: number
  /**
   * Reserved capacity (scheduling.md 11.1): the label with reservation ids, and whether a pod waits for the next pass
   * (`Strict`) when all suitable reservations are used up. Absent = not in use.
   */
  readonly reservations?: { readonly label: string; readonly mode: 'Strict' | 'Fallback' }
  /**
   * By default `provisioning`. In `disruption`, a pod that is placed on a node that is not initialized counts as
   * unschedulable (scheduling.md 14).
   */
  readonly simulation?: 'provisioning' | 'disruption'
  /**
   * Whether to look for cheaper new nodes than those of first fit. `planned`: pods are nominated for the node that
   * they are planned for; `free`: the plan must hold for any placement that kube-scheduler may choose. Absent = first fit.
   */
  readonly improvement?: 'planned' | 'free'
  /**
   * What kube-scheduler scores as balance: how evenly the node is used with the pod, or, from
   * 1.36 on, how the pod changes that. Absent = `use`.
   */
  readonly balance?: ScoredBalance
  /** How kube-scheduler scores what is used of nodes. Absent = the least allocated CPU and memory first. */
  readonly fitScoring?: FitScoring
  /** How kube-scheduler counts pods that are resized in place. Absent = `sumOfMaxima`, which never counts less. */
  readonly resizedRequests?: ResizedRequests
}

/** `scoringStrategy` of kube-scheduler's plugin NodeResourcesFit (wanted.md 8). */
export interface FitScoring {
  readonly type: 'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio'
  /** The resources that count; extended ones count for pods that request them. */
  readonly resources: readonly { readonly name: string; readonly weight: number }[]
  /** Of RequestedToCapacityRatio: scores from 0 to 10 for utilizations in percent, which rise; linear in between. */
  readonly shape?: readonly { readonly utilization: number; readonly score: number }[]
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

/** The cluster as topology spread constraints, affinity and anti-affinity see it (scheduling.md 9). */
export interface TopologyInput {
  /** All bound pods of the cluster. */
  readonly pods: readonly Pod[]
  /** By Node name; includes terminating nodes. */
  readonly nodes: ReadonlyMap<string, TopologyNode>
  /** Labels of every namespace. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** What the volumes of a pod require of its node (scheduling.md 8). */
export interface PodVolumes {
  /** The node must meet one of these; none = any node. Relaxation never drops them. */
  readonly alternatives: readonly (readonly NodeSelectorRequirement[])[]
  /** Volume claims that count towards attach limits. */
  readonly claims: VolumeUse
  /** Claims (`namespace/name`) that no other pod of the cluster may use at the same time (ReadWriteOncePod). */
  readonly exclusive?: readonly string[]
  /** Set when a lookup failed, so that no existing node can be judged (scheduling.md 8.1). */
  readonly unknownClaims?: boolean
}

/**
 * Where a pod comes from:
 * - `pending`: not bound; `deleting`: on a terminating node; `candidate`: on a disruption candidate; `starting`: bound to
 *   a candidate but not running, so that it may go to any node.
 * - Placeholder pods: `buffer` (CapacityBuffer) is placed after all other pods, and takes nothing from them. `request`
 *   (ProvisioningRequest) is placed like a pending pod. `check` too, but only on nodes that exist or are on their way.
 */
export type PodOrigin = 'pending' | 'deleting' | 'candidate' | 'starting' | 'buffer' | 'request' | 'check'

/**
 * A pod group: its members run together or not at all (gangs.md 7.1). The pods of the input contain the members.
 */
export interface PodGroupInput {
  /** API group of the kind, namespace and name. */
  readonly id: string
  /** UIDs of the members that have no node. A pod is in at most one group. */
  readonly members: readonly string[]
  /** The fewest members that run; 0 = members are scheduled independently. */
  readonly minCount: number
  /** The number of members on nodes that have neither ended nor are terminating. */
  readonly bound: number
  /** Higher priorities are placed first. */
  readonly priority: number
  /** Creation time as RFC 3339; older first. */
  readonly createdAt: string
  /** The node label of which all members need one value; `domain`: the value of bound members. Absent = any nodes. */
  readonly topology?: { readonly key: string; readonly domain?: string }
}

/** Everything a scheduling decision depends on. */
export interface SchedulingInput {
  /** Pods to place: pending pods, and those of terminating nodes. */
  readonly pods: readonly Pod[]
  readonly nodes: readonly NodeInput[]
  readonly pools: readonly PoolInput[]
  /** Absent = none. */
  readonly quotas?: readonly QuotaInput[]
  readonly daemons: readonly DaemonInput[]
  readonly topology: TopologyInput
  readonly policy: SchedulingPolicy
  /** By pod UID; only pods whose volumes matter. */
  readonly volumes?: ReadonlyMap<string, PodVolumes>
  readonly attachLimits?: AttachLimits
  /** If absent, pods that use ResourceClaims are unschedulable. */
  readonly devices?: DevicesInput
  /** By pod UID; by default `pending`. */
  readonly origins?: ReadonlyMap<string, PodOrigin>
  /**
   * The node that an earlier decision launched or kept for a pod, by pod UID. The pod stays there if it still fits, so
   * that a plan does not change while its nodes are on their way.
   */
  readonly planned?: ReadonlyMap<string, string>
  /** Offerings that failed recently: only one launch at a time may try them again. Absent = none. */
  readonly offeringsOnTrial?: readonly LaunchScope[]
  /** Absent = none. */
  readonly podGroups?: readonly PodGroupInput[]
}
