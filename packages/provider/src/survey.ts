/** What `tenon init` asks of a cloud: which node groups a cluster has already. Nothing is changed by it. */
import type { InstanceType, Node, NodeClass, ResourceType, Taint } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'

/** How a cloud knows a node: not at all, as an instance of its own, or as one that it manages on another cloud. */
export type Recognition = 'none' | 'instance' | 'managed'

/** Nodes that the cloud, or a user of it, has made alike. */
export interface ExistingGroup {
  /** What the cloud calls such a group, such as `nodepool`. */
  readonly source: string
  readonly name: string
  /** Other names that `--nodes` of Cluster Autoscaler may have for it, such as an id. */
  readonly otherNames: readonly string[]
  /** Name of its instance type. */
  readonly instanceType: string
  /** Number of nodes; absent when it is not known. */
  readonly size?: number
  /** Bounds that the cloud itself knows of; those of `--nodes` come first. */
  readonly minSize?: number
  readonly maxSize?: number
  /** Of its nodes: those that the group gives them. */
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  /** `spec` of a node class whose nodes are like those of the group. */
  readonly nodeClassSpec: object
  /** What the user has to know or do before its NodePool launches nodes: sentences. */
  readonly remarks: readonly string[]
}

/** What a cluster has. */
export interface Survey {
  readonly groups: readonly ExistingGroup[]
  /** Types that nodes can be launched with; those of the module's `offline` without it. */
  readonly types?: readonly InstanceType[]
  /** What could not be found out, and why: sentences. */
  readonly remarks: readonly string[]
}

/** What a survey is made with. */
export interface SurveyDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Of the cluster; refuses to write. */
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly nodes: readonly Node[]
  readonly clock: Clock
  readonly logger: Logger
  readonly userAgent: string
}

/** Finds the node groups of a cluster, for `tenon init`. */
export interface SurveyModule {
  /** By its provider ID, mostly. */
  recognizes(node: Node): Recognition
  /** The kind of node class that is written. */
  readonly nodeClass: ResourceType<NodeClass>
  /** `spec` of a node class for nodes of which only the instance type is known. */
  nodeClassSpecOf(instanceType: string): object
  /**
   * Reads the groups. What cannot be read is a remark, not an error: nodes tell the rest.
   * @throws ProviderSettingError for a setting that is wrong; one that is missing is a remark.
   */
  survey(dependencies: SurveyDependencies, signal: AbortSignal): Promise<Survey>
}
