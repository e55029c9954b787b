import { meetsRequirement } from './node-selector.ts'
import type { LabelSelector } from './objects.ts'
import { ownValue } from './own.ts'

type Labels = Readonly<Record<string, string>> | undefined

/** Whether `labels` satisfy `selector`. An absent selector, or null, matches nothing, an empty one everything. */
export function matchesSelector(selector: LabelSelector | null | undefined, labels: Labels): boolean {
  if (selector === undefined || selector === null) return false
  for (const [key, value] of Object.entries(selector.matchLabels ?? {}))
    if (ownValue(labels, key) !== value) return false
  return (selector.matchExpressions ?? []).every((one) => meetsRequirement(one, ownValue(labels, one.key)))
}
