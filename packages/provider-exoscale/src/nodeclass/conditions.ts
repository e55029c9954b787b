/** Conditions of a node class. `Ready` has reasons of this kind, not those of the core. */
import type { Condition } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'

export const readyCondition = 'Ready'

export interface ConditionUpdate {
  readonly type: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
}

/** A condition that is true, with its type as the reason. */
export function holds(type: string): ConditionUpdate {
  return { type, status: 'True', reason: type, message: '' }
}

/** The list with `updates`. A transition time only changes with the status; oldest first, `Ready` last. */
export function withConditions(
  old: readonly Condition[],
  updates: readonly ConditionUpdate[],
  observedGeneration: number,
  nowMs: number,
): readonly Condition[] {
  const updated = updates.map((update): Condition => {
    const before = old.find((condition) => condition.type === update.type)
    const lastTransitionTime =
      before !== undefined && before.status === update.status ? before.lastTransitionTime : rfc3339(nowMs)
    return { ...update, lastTransitionTime, observedGeneration }
  })
  const kept = old.filter((condition) => !updates.some((update) => update.type === condition.type))
  return [...kept, ...updated].sort(inOrder)
}

function inOrder(a: Condition, b: Condition): number {
  if (a.type === readyCondition || b.type === readyCondition) return a.type === readyCondition ? 1 : -1
  if (a.lastTransitionTime === b.lastTransitionTime) return 0
  return a.lastTransitionTime < b.lastTransitionTime ? -1 : 1
}
