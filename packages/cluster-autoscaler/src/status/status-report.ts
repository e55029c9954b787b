/** The status of the cluster and its groups in one loop (cluster-autoscaler.md 7.1). Plain data. */

import type { GroupHold } from '@tenon/provider'

/** Nodes by state. */
export interface NodeCounts {
  readonly registered: number
  readonly ready: number
  readonly notStarted: number
  readonly suspended: number
  readonly beingDeleted: number
  readonly unready: number
  /** Unready nodes that lack a resource. */
  readonly resourceUnready: number
  readonly longUnregistered: number
  readonly unregistered: number
}

export interface GroupReport {
  readonly id: string
  readonly isHealthy: boolean
  readonly counts: NodeCounts
  readonly targetSize: number
  readonly minSize: number
  readonly maxSize: number
  /** Whether nodes are upcoming. */
  readonly isScalingUp: boolean
  /** Set during a back-off after a failure. */
  readonly backoff?: { readonly code: string; readonly message: string }
  /** Nodes that scale-down may remove. */
  readonly candidates: number
}

/** The loop runs and has read the cluster. */
export interface RunningReport {
  readonly kind: 'running'
  /** For people; may be empty. */
  readonly message: string
  readonly cluster: {
    readonly isHealthy: boolean
    readonly counts: NodeCounts
    readonly isScalingUp: boolean
    readonly candidates: number
  }
  readonly groups: readonly GroupReport[]
  /** By group id: why it cannot be scaled at present. */
  readonly faults: ReadonlyMap<string, string>
  /** By group id: what must not be changed at present. */
  readonly holds: ReadonlyMap<string, GroupHold>
  /** What is left of each CapacityQuota, or why it is not enforced. */
  readonly quotas: readonly { readonly name: string; readonly message: string }[]
}

export type StatusReport =
  | RunningReport
  /** Nothing is known yet. */
  | { readonly kind: 'initializing'; readonly message: string }
