/** Input and result of scale-down in one loop. */
import type { Node } from '@tenon/api'
import type { LoopErrorType, LoopView } from '../model.ts'
import type { UnneededNode } from './planning/planner.ts'
import type { UnremovableNode } from './reasons.ts'

export interface ScaleDownInput {
  readonly view: LoopView
  /**
   * Nodes that may be removed or receive pods: registered ones, except those that the snapshot shows as upcoming
   * (cluster-autoscaler.md 2.3).
   */
  readonly candidates: readonly Node[]
  /** Very new pods are pending (cluster-autoscaler.md 4.1): nothing is deleted in this loop. */
  readonly isForbidden: boolean
  /** Of any group; undefined if there was none since the start. */
  readonly lastScaleUpMs: number | undefined
  /** By group id, for `--scale-down-delay-type-local`. */
  readonly lastScaleUpMsByGroup: ReadonlyMap<string, number>
}

export type ScaleDownStep =
  | { readonly kind: 'disabled' }
  | { readonly kind: 'cooldown' }
  /** Nothing can be deleted now. */
  | { readonly kind: 'nothingToDelete' }
  /** Node names; with `--dry-run` those that would have been deleted. */
  | { readonly kind: 'started'; readonly empty: readonly string[]; readonly drain: readonly string[] }
  /** Nodes could not be tainted. Deletions of empty ones may have started before. */
  | { readonly kind: 'failed'; readonly error: LoopErrorType; readonly message: string }

export interface ScaleDownOutcome {
  readonly step: ScaleDownStep
  readonly unneeded: readonly UnneededNode[]
  /** Why all other nodes stay, including those of `unneeded` that are not removed yet. */
  readonly unremovable: readonly UnremovableNode[]
  /** The number of unneeded nodes by group id; groups without any are absent. */
  readonly candidatesByGroup: ReadonlyMap<string, number>
  /** When deletions were last started; undefined = never. The next loop begins at once after it. */
  readonly lastDeletionStartedMs: number | undefined
}
