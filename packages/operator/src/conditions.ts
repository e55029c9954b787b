/** Conditions of kinds without a root condition: each stands for itself. */
import { type Condition, conditionOf, type KubeObject, type NewCondition, sameCondition } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'

interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** Replaces or adds the condition; returns the same list if nothing changes. */
export function withCondition(
  object: WithConditions,
  { type, status, reason = type, message = '' }: NewCondition,
  nowMs: number,
): readonly Condition[] {
  const stored = object.status?.conditions ?? []
  const old = conditionOf(object, type)
  const { generation: observedGeneration = 0 } = object.metadata
  const lastTransitionTime =
    old === undefined || old.status !== status ? rfc3339(nowMs) : old.lastTransitionTime
  const next: Condition = { type, status, reason, message, lastTransitionTime, observedGeneration }
  if (old !== undefined && sameCondition(old, next)) return stored
  return old === undefined
    ? [...stored, next]
    : stored.map((condition) => (condition.type === type ? next : condition))
}
