/** What `tenon init` has seen of a cluster, and what it writes. */
import type { InstanceType, NodeClass, Pod, Resources, ResourceType, Taint } from '@tenon/api'
import type { ExistingGroup } from '@tenon/provider'

/** Bounds that `--nodes` of a running Cluster Autoscaler gives to a group. */
export interface GroupBounds {
  readonly min: number
  readonly max: number
  /** As `--nodes` names the group. */
  readonly name: string
}

/** A cluster as far as it matters. */
export interface SeenCluster {
  /** Of the provider. */
  readonly title: string
  readonly nodeClass: ResourceType<NodeClass>
  /** From the cloud, or from nodes where that tells nothing. */
  readonly groups: readonly ExistingGroup[]
  readonly bounds: readonly GroupBounds[]
  /** Each name once. */
  readonly types: readonly InstanceType[]
  /** Pods that wait for a node; those of DaemonSets aside. */
  readonly pending: readonly Pod[]
  /** What pods of DaemonSets take of each node. */
  readonly daemonRequests: Resources
  readonly nodeClassSpecOf: (instanceType: string) => object
  /** Whether a NodePool may give a label of this key to its nodes. */
  readonly isOwnLabel: (key: string) => boolean
  /** Sentences. */
  readonly remarks: readonly string[]
}

/** A NodePool to write. */
export interface PlannedPool {
  readonly name: string
  /** Sentences about where it comes from and what to do. */
  readonly remarks: readonly string[]
  readonly nodeClassName: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly instanceTypes: readonly string[]
  /** Why these: a sentence. */
  readonly aboutTypes: string
  /** Whole CPUs; absent for no limit. */
  readonly cpuLimit?: number
}

/** A node class to write. */
export interface PlannedNodeClass {
  readonly name: string
  readonly spec: object
}

/** Everything to write. */
export interface Plan {
  /** Of the provider. */
  readonly title: string
  readonly nodeClass: ResourceType<NodeClass>
  readonly nodeClasses: readonly PlannedNodeClass[]
  readonly pools: readonly PlannedPool[]
  /** Sentences for the head of the file. */
  readonly remarks: readonly string[]
}
