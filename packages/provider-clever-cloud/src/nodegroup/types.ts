/** NodeGroup, through which Clever Cloud creates nodes (clever-cloud.md 2). */
import type { Condition, KubeObject, ResourceType, Taint } from '@tenon/api'

/** A number of equal nodes. The platform owns the kind; anything in the status may be absent. */
export interface NodeGroup extends KubeObject {
  readonly spec: {
    /** Such as `2XS`; immutable. */
    readonly flavor: string
    readonly nodeCount: number
    /** Labels of all nodes of the group; immutable. */
    readonly labels?: Readonly<Record<string, string>>
    /** Taints of all nodes of the group; immutable. */
    readonly taints?: readonly Taint[]
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly nodeCount?: number
    readonly targetNodeCount?: number
    /** Such as `Creating`, `Synced`, `QuotaExceeded`. */
    readonly phase?: string
    readonly upstreamId?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly taints?: readonly Taint[]
  }
}

/** The kind of {@link NodeGroup}. */
export const nodeGroupKind: ResourceType<NodeGroup> = {
  group: 'api.clever-cloud.com',
  version: 'v1',
  kind: 'NodeGroup',
  plural: 'nodegroups',
  namespaced: false,
}
