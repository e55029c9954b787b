/** The drift hash of a CleverNodeClass (clever-cloud.md 3.1). */
import { hashRecord, hashStringMap } from '@tenon/api'
import type { CleverNodeClass } from './types.ts'

/** How {@link hashOf} computes; hashes of different versions are not compared (clever-cloud.md 20). */
export const hashVersion = 'v1'

/**
 * A decimal 64-bit number that changes when nodes would come out differently. Labels that are absent and labels
 * that are empty differ, as NodeGroups of earlier installations have it.
 */
export function hashOf(spec: CleverNodeClass['spec']): string {
  // A stored object may hold a null where the type has nothing.
  const labels = spec?.labels ?? undefined
  return hashRecord('CleverNodeClassSpec', [['Labels', labels && hashStringMap(labels)]]).toString()
}
