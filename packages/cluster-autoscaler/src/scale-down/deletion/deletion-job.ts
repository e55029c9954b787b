/** The deletion of a node, and its result. */
import type { Node, Pod } from '@tenon/api'
import type { Utilization } from '../nodes/utilization.ts'

export type DeletionKind = 'empty' | 'drain'

/** As in `scaled_down_nodes_total`. */
export type DeletionReason = 'empty' | 'underutilized' | 'unready'

/** A chosen node, as it was when it was tainted. */
export interface DeletionJob {
  readonly node: Node
  readonly groupId: string
  readonly kind: DeletionKind
  readonly reason: DeletionReason
  readonly utilization: Utilization
  /** Pods that must move, as of the choice. */
  readonly pods: readonly Pod[]
}

/** Where a deletion failed. */
type FailedStage =
  /** The node or its batch could not be tainted. */
  | 'tainting'
  /** The repeated reads do not allow it. */
  | 'recheck'
  | 'drain'
  /** A pod that must move arrived after the drain. */
  | 'newcomer'
  /** The node has changed since this deletion tainted it. */
  | 'witness'
  | 'cloud'

export interface DeletionFailure {
  readonly stage: FailedStage
  readonly message: string
}

/** The result of a deletion. */
export type DeletionResult = {
  readonly nodeName: string
  readonly groupId: string
  readonly atMs: number
} & (
  | { readonly kind: 'deleted'; readonly reason: DeletionReason }
  | ({ readonly kind: 'failed' } & DeletionFailure)
)
