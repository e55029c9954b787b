/** PodDisruptionBudgets that keep the pods of a node where they are (disruption.md 3). */
import type { Pod, PodDisruptionBudget } from '@tenon/api'
import { budgetsOf, isEvictable, isPausedByBudget, keyOf } from './pods.ts'

/** A pod that is held, by `namespace/name`, and the PDBs that hold it. */
export interface BlockingBudgets {
  /** Whether one PDB allows no disruption now, or there are several, which eviction does not support. */
  readonly kind: 'exhausted' | 'several'
  readonly pod: string
  readonly budgets: readonly string[]
}

/** What holds each of the pods that is held, one after the other. */
export function* blockingBudgets(
  pods: readonly Pod[],
  budgets: readonly PodDisruptionBudget[],
  nowMs: number,
): Generator<BlockingBudgets, undefined, undefined> {
  for (const pod of pods) {
    const covering = budgetsOf(pod, budgets)
    if (covering.length === 0 || !isEvictable(pod, nowMs)) continue
    const isSeveral = covering.length > 1
    if (!isSeveral && !isPausedByBudget(pod, covering, nowMs)) continue
    yield {
      kind: isSeveral ? 'several' : 'exhausted',
      pod: keyOf(pod.metadata),
      budgets: covering.map(({ metadata }) => keyOf(metadata)).toSorted(),
    }
  }
  return undefined
}
