/** Conditions of a CapacityBuffer: each stands for itself, and there is no Ready (buffers-and-dra.md 2.2, 2.7). */
import {
  type CapacityBuffer,
  type Condition,
  conditionOf,
  isConditionTrue,
  type NewCondition,
  sameCondition,
} from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'

export const readyType = 'ReadyForProvisioning'
const provisioningType = 'Provisioning'

/** What a scheduling pass found for the pods of one buffer. */
export interface BufferTally {
  /** Pods with room on nodes that are there or on their way. */
  readonly existing: number
  /** Pods for which nodes have to be launched. */
  readonly launched: number
  readonly failed: number
}

/** What a pass says of a buffer; undefined where it says nothing new. */
export function provisioningCondition(
  buffer: CapacityBuffer,
  tally: BufferTally | undefined,
): NewCondition | undefined {
  const type = provisioningType
  const { replicas: desired = 0 } = buffer.status ?? {}
  if (!isConditionTrue(buffer, readyType))
    return {
      type,
      status: 'False',
      reason: 'NotReadyForProvisioning',
      message: 'The buffer is not ready for provisioning',
    }
  if (desired <= 0)
    return { type, status: 'False', reason: 'BufferEmpty', message: 'The buffer has no replicas' }
  if (tally === undefined) return undefined
  const { existing, failed, launched } = tally
  if (launched + failed > 0)
    return {
      type,
      status: 'False',
      reason: 'RequiresNewCapacity',
      message: `New nodes are needed for ${launched} of ${desired} pods, and ${failed} cannot be placed`,
    }
  if (existing !== desired) return undefined
  return {
    type,
    status: 'True',
    reason: 'FitsExistingCapacity',
    message: `There is room for all ${existing} pods on existing nodes`,
  }
}

/** The conditions with this one in place of the one of its type; the same list when that says the same. */
export function withCondition(
  buffer: CapacityBuffer,
  { type, status, reason = type, message = '' }: NewCondition,
  nowMs: number,
): readonly Condition[] {
  const stored = buffer.status?.conditions ?? []
  const old = conditionOf(buffer, type)
  const { generation: observedGeneration = 0 } = buffer.metadata
  const lastTransitionTime =
    old === undefined || old.status !== status ? rfc3339(nowMs) : old.lastTransitionTime
  const next: Condition = { type, status, reason, message, lastTransitionTime, observedGeneration }
  if (old !== undefined && sameCondition(old, next)) return stored
  return old === undefined
    ? [...stored, next]
    : stored.map((condition) => (condition.type === type ? next : condition))
}
