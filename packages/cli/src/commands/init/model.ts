/** What `tenon init` reads from a cluster, and what it writes. */
import type { InstanceType, NodeClass, Pod, Resources, ResourceType, Taint } from '@tenon/api'
import type { ExistingGroup } from '@tenon/provider'

/** Limits of a group from the `--nodes` flag of a running Cluster Autoscaler. */
export interface GroupBounds {
  readonly min: number
  readonly max: number
  /** The group's name in `--nodes`. */
  readonly name: string
}

export interface SeenCluster {
  /** Name of the provider for people. */
  readonly title: string
  readonly nodeClass: ResourceType<NodeClass>
  /** From the cloud, or derived from nodes if the cloud has none. */
  readonly groups: readonly ExistingGroup[]
  readonly bounds: readonly GroupBounds[]
  /** One entry per name. */
  readonly types: readonly InstanceType[]
  /** Pending pods, without those of DaemonSets. */
  readonly pending: readonly Pod[]
  /** Requests of DaemonSet pods per node. */
  readonly daemonRequests: Resources
  readonly nodeClassSpecOf: (instanceType: string) => object
  /** Whether a NodePool may set a label with this key. */
  readonly isOwnLabel: (key: string) => boolean
  /** Sentences. */
  readonly remarks: readonly string[]
}

/** A NodePool to write. */
export interface PlannedPool {
  readonly name: string
  /** Sentences: where it comes from and what to do. */
  readonly remarks: readonly string[]
  readonly nodeClassName: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly instanceTypes: readonly string[]
  /** Why these types: a sentence. */
  readonly aboutTypes: string
  /** Whole CPUs; absent: no limit. */
  readonly cpuLimit?: number
}

/** A node class to write. */
export interface PlannedNodeClass {
  readonly name: string
  readonly spec: object
}

export interface Plan {
  /** Name of the provider for people. */
  readonly title: string
  readonly nodeClass: ResourceType<NodeClass>
  readonly nodeClasses: readonly PlannedNodeClass[]
  readonly pools: readonly PlannedPool[]
  /** Sentences for the head of the file. */
  readonly remarks: readonly string[]
}
