import { type LabelSelector, ownValue } from '@tenon/api'

export type Labels = Readonly<Record<string, string>>

/** Whether `labels` satisfy `selector`. An empty selector matches all, an absent one nothing. */
export function selectorMatches(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return false
  const given = labels ?? {}
  if (!labelsInclude(given, selector.matchLabels)) return false
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const value = Object.hasOwn(given, key) ? ownValue(given, key) : undefined
    switch (operator) {
      case 'In':
        if (value === undefined || !values?.includes(value)) return false
        break
      case 'NotIn':
        if (value !== undefined && values?.includes(value)) return false
        break
      case 'Exists':
        if (value === undefined) return false
        break
      case 'DoesNotExist':
        if (value !== undefined) return false
        break
    }
  }
  return true
}

/** Whether a selector selects everything, which no workload may. */
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
