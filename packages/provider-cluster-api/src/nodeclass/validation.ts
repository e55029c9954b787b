/** Validates a ClusterAPINodeClass (cluster-api.md 2, 4). */
import type { OfflineFinding } from '@tenon/provider'
import { selectorProblems } from '../catalogue/members.ts'
import type { ClusterAPINodeClass } from '../node-class.ts'

/** Errors make `ValidationSucceeded` false. */
export function findingsOf({ spec }: Pick<ClusterAPINodeClass, 'spec'>): readonly OfflineFinding[] {
  return selectorProblems(spec?.scalableResourceSelector).map(({ field, ...problem }) => ({
    severity: 'error',
    field: `spec.scalableResourceSelector.${field}`,
    ...problem,
  }))
}
