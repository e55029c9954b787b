/** NodeGroup, through which Clever Cloud makes nodes (clever-cloud.md 2). */
import type { Condition, KubeObject, ResourceType, Taint } from '@tenon/api'

/** A number of like nodes. The platform owns the kind; everything in its status may be absent. */
export interface NodeGroup extends KubeObject {
  readonly spec: {
    /** Such as `2XS`; immutable. */
    readonly flavor: string
    readonly nodeCount: number
    /** Of all nodes of the group; immutable. */
    readonly labels?: Readonly<Record<string, string>>
    /** Of all nodes of the group; immutable. */
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
