import type { RepairPolicy } from './contract.ts'

const tolerationMs = 10 * 60_000

/** Replaces nodes that have not been ready for ten minutes: for clouds whose nodes tell nothing else. */
export const replaceUnready: readonly RepairPolicy[] = (['False', 'Unknown'] as const).map(
  (conditionStatus) => ({ conditionType: 'Ready', conditionStatus, tolerationMs }),
)
