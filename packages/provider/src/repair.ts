import type { RepairPolicy } from './contract.ts'

const tolerationMs = 10 * 60_000

/** Replaces nodes that were not ready for ten minutes; for clouds whose nodes report no other conditions. */
export const replaceUnready: readonly RepairPolicy[] = (['False', 'Unknown'] as const).map(
  (conditionStatus) => ({ conditionType: 'Ready', conditionStatus, tolerationMs }),
)
