/** The drift hash of a CleverNodeClass (clever-cloud.md 3.1). */
import { hashRecord, hashStringMap } from '@tenon/api'
import type { CleverNodeClass } from './types.ts'

/** The version of {@link hashOf}; hashes of different versions are not compared (clever-cloud.md 20). */
export const hashVersion = 'v1'

/**
 * A decimal 64-bit number that changes if new nodes would differ. Absent and empty labels differ, as in NodeGroups of
 * earlier installations.
 */
export function hashOf(spec: CleverNodeClass['spec']): string {
  // Stored objects may have null where the type has undefined.
  const labels = spec?.labels ?? undefined
  return hashRecord('CleverNodeClassSpec', [['Labels', labels && hashStringMap(labels)]]).toString()
}
