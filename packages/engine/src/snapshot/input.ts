/** Everything a scheduling decision may depend on. Immutable; the engine changes none of it. */
import type { InstanceType, NodePool, Pod, PodSpec, Resources, Taint } from '@tenon/api'
import type { HostPort } from '../provisioning/host-ports.ts'

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
}

/** A NodePool that may launch, with what its provider offers for it. */
export interface PoolInput {
  readonly nodePool: NodePool
  readonly instanceTypes: readonly InstanceType[]
  /** Capacity of the pool's nodes now, with `nodes` as their count. */
  readonly usage: Resources
}

/** A DaemonSet, by the pod it would put on a node. */
export interface DaemonInput {
  readonly name: string
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

/** Everything a scheduling decision depends on. */
export interface SchedulingInput {
  /** Pods to place: pending ones and those on nodes that are going away. */
  readonly pods: readonly Pod[]
  readonly nodes: readonly NodeInput[]
  readonly pools: readonly PoolInput[]
  readonly daemons: readonly DaemonInput[]
  readonly topology: TopologyInput
  readonly policy: SchedulingPolicy
}
