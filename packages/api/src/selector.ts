import { ownValue } from './own.ts'
import type { LabelSelector, LabelSelectorRequirement } from './objects.ts'

type Labels = Readonly<Record<string, string>> | undefined

/** Whether `labels` satisfy `selector`. An absent selector, or null, matches nothing, an empty one everything. */
export function matchesSelector(selector: LabelSelector | null | undefined, labels: Labels): boolean {
  if (selector === undefined || selector === null) return false
  for (const [key, value] of Object.entries(selector.matchLabels ?? {}))
    if (ownValue(labels, key) !== value) return false
  return (selector.matchExpressions ?? []).every((expression) => matchesExpression(expression, labels))
}

function matchesExpression(expression: LabelSelectorRequirement, labels: Labels): boolean {
  const value = ownValue(labels, expression.key)
  switch (expression.operator) {
    case 'In':
      return value !== undefined && (expression.values ?? []).includes(value)
    case 'NotIn':
      return value === undefined || !(expression.values ?? []).includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
  }
}
