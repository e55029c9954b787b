import { type LabelSelectorRequirement, ownValue } from '@tenon/api'

/**
 * The selector that `matchLabelKeys` (In) or `mismatchLabelKeys` (NotIn) take from a pod's labels; labels that the pod
 * does not have are ignored.
 */
export function fromLabels(
  keys: readonly string[] | undefined,
  labels: Readonly<Record<string, string>>,
  operator: 'In' | 'NotIn',
): readonly LabelSelectorRequirement[] {
  return (keys ?? []).flatMap((key) => {
    const value = ownValue(labels, key)
    return value === undefined ? [] : [{ key, operator, values: [value] }]
  })
}
