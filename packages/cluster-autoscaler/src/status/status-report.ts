/** What a loop tells of the state of the cluster and its groups (cluster-autoscaler.md 7.1). Plain data. */

/** Nodes by what they count as. */
export interface NodeCounts {
  readonly registered: number
  readonly ready: number
  readonly notStarted: number
  readonly suspended: number
  readonly beingDeleted: number
  readonly unready: number
  /** Those of the unready ones that lack a resource. */
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
  /** Nodes are awaited. */
  readonly isScalingUp: boolean
  /** Given while the group is left alone after a failure. */
  readonly backoff?: { readonly code: string; readonly message: string }
  /** Nodes that scale-down may remove. */
  readonly candidates: number
}

/** The loop runs, and knows the cluster. */
export interface RunningReport {
  readonly kind: 'running'
  /** For people; empty for none. */
  readonly message: string
  readonly cluster: {
    readonly isHealthy: boolean
    readonly counts: NodeCounts
    readonly isScalingUp: boolean
    readonly candidates: number
  }
  readonly groups: readonly GroupReport[]
  /** By group id: why it cannot be scaled now. */
  readonly faults: ReadonlyMap<string, string>
}

export type StatusReport =
  | RunningReport
  /** Nothing is known yet. */
  | { readonly kind: 'initializing'; readonly message: string }
