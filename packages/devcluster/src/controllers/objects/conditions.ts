import { rfc3339 } from '@tenon/runtime'
import type { WorkloadCondition } from './workloads.ts'

type Conditions = readonly WorkloadCondition[] | undefined

export function findCondition(conditions: Conditions, type: string): WorkloadCondition | undefined {
  return conditions?.find((condition) => condition.type === type)
}

export function isConditionTrue(conditions: Conditions, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

/**
 * The conditions with one set; the same list if status, reason and message are equal. The transition time only changes
 * with the status.
 */
export function setCondition(
  conditions: Conditions,
  condition: WorkloadCondition,
  nowMs: number,
): readonly WorkloadCondition[] {
  const old = findCondition(conditions, condition.type)
  if (
    old?.status === condition.status &&
    old.reason === condition.reason &&
    old.message === condition.message &&
    old.observedGeneration === condition.observedGeneration
  ) {
    return conditions ?? []
  }
  const kept = old?.status === condition.status ? old.lastTransitionTime : undefined
  const next = { ...condition, lastTransitionTime: kept ?? rfc3339(nowMs) }
  return [...(conditions ?? []).filter((each) => each.type !== condition.type), next]
}

export function withoutCondition(conditions: Conditions, type: string): readonly WorkloadCondition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type)
}
