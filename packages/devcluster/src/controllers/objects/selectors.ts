import { type LabelSelector, ownValue } from '@tenon/api'

export type Labels = Readonly<Record<string, string>>

/** Whether a selector selects everything, which workloads must not. */
export function isEmptySelector(selector: LabelSelector | undefined): boolean {
  return (
    Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0
  )
}

/** Whether `labels` contain every pair of `wanted`. */
export function labelsInclude(labels: Labels | undefined, wanted: Labels | undefined): boolean {
  for (const key in wanted) if (ownValue(labels, key) !== ownValue(wanted, key)) return false
  return true
}
