/** Query strings of list and watch requests. */
import type { LabelSelector, LabelSelectorRequirement } from '@tenon/api'
import type { ListOptions } from '../contract.ts'

/** The text form of a label selector, as in `labelSelector=`. */
export function labelSelectorText(selector: LabelSelector): string {
  const equal = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [...equal, ...(selector.matchExpressions ?? []).map(expressionText)].join(',')
}

function expressionText({ key, operator, values = [] }: LabelSelectorRequirement): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(',')})`
    case 'NotIn':
      return `${key} notin (${values.join(',')})`
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
  }
}

/** `?…` with the selectors of `options` and further parameters; empty when there are none. */
export function queryText(
  options: Pick<ListOptions, 'labelSelector' | 'fieldSelector'>,
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = new URLSearchParams()
  const labels = options.labelSelector === undefined ? '' : labelSelectorText(options.labelSelector)
  if (labels !== '') query.set('labelSelector', labels)
  if (options.fieldSelector !== undefined) query.set('fieldSelector', options.fieldSelector)
  for (const [key, value] of Object.entries(more)) if (value !== undefined) query.set(key, value)
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
