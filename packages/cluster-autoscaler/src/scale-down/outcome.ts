/** What one loop gives to scale-down, and what it gets back. */
import type { Node } from '@tenon/api'
import type { LoopErrorType, LoopView } from '../model.ts'
import type { UnneededNode } from './planning/planner.ts'
import type { UnremovableNode } from './reasons.ts'

export interface ScaleDownInput {
  readonly view: LoopView
  /**
   * Nodes that may go and that may take pods: registered ones, without those that upcoming nodes stand for in the
   * snapshot (cluster-autoscaler.md 2.3).
   */
  readonly candidates: readonly Node[]
  /** Very new pods wait (cluster-autoscaler.md 4.1): nothing is deleted in this loop. */
  readonly isForbidden: boolean
  /** Of any group; undefined = none since the process began. */
  readonly lastScaleUpMs: number | undefined
  /** By group id, for `--scale-down-delay-type-local`. */
  readonly lastScaleUpMsByGroup: ReadonlyMap<string, number>
}

export type ScaleDownStep =
  | { readonly kind: 'disabled' }
  | { readonly kind: 'cooldown' }
  /** There is nothing that could be deleted now. */
  | { readonly kind: 'nothingToDelete' }
  /** Names of nodes; with `--dry-run` those that would have been deleted. */
  | { readonly kind: 'started'; readonly empty: readonly string[]; readonly drain: readonly string[] }
  /** Nodes could not be marked. Empty ones may have been started before. */
  | { readonly kind: 'failed'; readonly error: LoopErrorType; readonly message: string }

export interface ScaleDownOutcome {
  readonly step: ScaleDownStep
  readonly unneeded: readonly UnneededNode[]
  /** Why the other nodes stay, those among `unneeded` that do not go yet included. */
  readonly unremovable: readonly UnremovableNode[]
  /** How many unneeded nodes each group has, by group id; groups without one are absent. */
  readonly candidatesByGroup: ReadonlyMap<string, number>
  /** When deletions were started last; undefined = never. The next loop begins at once after it. */
  readonly lastDeletionStartedMs: number | undefined
}
