/** What `tenon init` reads from a cloud: the existing node groups of a cluster. It changes nothing. */
import type { InstanceType, Node, NodeClass, Requirement, ResourceType, Taint } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'

/** Whether a node is unknown to the cloud, one of its instances, or one that it manages in another cloud. */
export type Recognition = 'none' | 'instance' | 'managed'

/** Nodes that the cloud, or a user of it, created with equal settings. */
export interface ExistingGroup {
  /** The cloud's name for such a group, such as `nodepool`. */
  readonly source: string
  readonly name: string
  /** Other names in `--nodes` of Cluster Autoscaler, such as an id. */
  readonly otherNames: readonly string[]
  /** Name of its instance type. */
  readonly instanceType: string
  /** Number of nodes; absent if unknown. */
  readonly size?: number
  /** The cloud's own limits; those of `--nodes` take precedence. */
  readonly minSize?: number
  readonly maxSize?: number
  /** Labels that the group sets on its nodes. */
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  /** `spec` of a node class with the settings of the group. */
  readonly nodeClassSpec: object
  /** What the user must know or do before the NodePool can launch nodes: sentences. */
  readonly remarks: readonly string[]
}

/** The existing groups of a cluster. */
export interface Survey {
  readonly groups: readonly ExistingGroup[]
  /** Types that can be launched; default: those of the module's `offline`. */
  readonly types?: readonly InstanceType[]
  /** What could not be read, and why: sentences. */
  readonly remarks: readonly string[]
}

/** What a survey needs. */
export interface SurveyDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The cluster; writes are refused. */
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly nodes: readonly Node[]
  readonly clock: Clock
  readonly logger: Logger
  readonly userAgent: string
}

/** Finds the node groups of a cluster, for `tenon init`. */
export interface SurveyModule {
  /** Usually decided by its provider ID. */
  recognizes(node: Node): Recognition
  /** The kind of the node class to write. */
  readonly nodeClass: ResourceType<NodeClass>
  /** `spec` of a node class for nodes of which only the instance type is known, or nothing (empty text). */
  nodeClassSpecOf(instanceType: string): object
  /** Requirements of a first NodePool, for nodes of any use; default: only `on-demand`. */
  readonly firstRequirements?: readonly Requirement[]
  /**
   * Reads the groups. What cannot be read is a remark, not an error, as nodes show the rest.
   * @throws ProviderSettingError for an invalid setting; a missing setting is a remark.
   */
  survey(dependencies: SurveyDependencies, signal: AbortSignal): Promise<Survey>
}
