/** Query strings of list and watch requests. */
import { selectorText } from '@tenon/api'
import type { ListOptions } from '../contract.ts'

/** `?…` with selectors and other parameters; empty if there are none. */
export function queryText(
  options: Pick<ListOptions, 'labelSelector' | 'fieldSelector'>,
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = new URLSearchParams()
  const labels = options.labelSelector === undefined ? '' : selectorText(options.labelSelector)
  if (labels !== '') query.set('labelSelector', labels)
  if (options.fieldSelector !== undefined) query.set('fieldSelector', options.fieldSelector)
  for (const [key, value] of Object.entries(more)) if (value !== undefined) query.set(key, value)
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
