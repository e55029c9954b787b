/** A node that is being deleted, and how it ends. */
import type { Node, Pod } from '@tenon/api'
import type { Utilization } from '../nodes/utilization.ts'

export type DeletionKind = 'empty' | 'drain'

/** As in `scaled_down_nodes_total`. */
export type DeletionReason = 'empty' | 'underutilized' | 'unready'

/** A node chosen to go, as it was when it was tainted. */
export interface DeletionJob {
  readonly node: Node
  readonly groupId: string
  readonly kind: DeletionKind
  readonly reason: DeletionReason
  readonly utilization: Utilization
  /** Pods that need another place, as they were when the node was chosen. */
  readonly pods: readonly Pod[]
}

/** Where a deletion ended without success. */
type FailedStage =
  /** The node could not be tainted, or those of its batch. */
  | 'tainting'
  /** What was read again does not allow it. */
  | 'recheck'
  | 'drain'
  /** A pod that has to move came to the node after its drain. */
  | 'newcomer'
  /** The node is not, or no longer, as this deletion left it. */
  | 'witness'
  | 'cloud'

export interface DeletionFailure {
  readonly stage: FailedStage
  readonly message: string
}

/** How a deletion ended. */
export type DeletionResult = {
  readonly nodeName: string
  readonly groupId: string
  readonly atMs: number
} & (
  | { readonly kind: 'deleted'; readonly reason: DeletionReason }
  | ({ readonly kind: 'failed' } & DeletionFailure)
)
