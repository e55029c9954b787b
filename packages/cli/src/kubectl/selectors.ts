/** Parses label and field selectors. */
import {
  type KubeObject,
  type LabelSelector,
  type LabelSelectorRequirement,
  matchesSelector,
  ownValue,
  parseSelector,
} from '@tenon/api'
import { KubectlError } from '../errors.ts'
import type { SelectionFlags } from './flags.ts'

/** @throws KubectlError naming the invalid part. */
export function labelSelectorOf(text: string): LabelSelector {
  const read = parseSelector(text)
  if ('unread' in read) throw unreadable(read.unread)
  const matchExpressions = read.requirements.map(({ key, operator, values }): LabelSelectorRequirement => {
    // The API server accepts these operators in query strings, but not in selectors of objects.
    if (operator === 'Gt' || operator === 'Lt')
      throw unreadable(`${key}${operator === 'Gt' ? '>' : '<'}${values?.join('') ?? ''}`)
    return { key, operator, ...(values && { values }) }
  })
  return { matchExpressions }
}

function unreadable(part: string): KubectlError {
  return new KubectlError(
    `error: unable to parse the label selector at ${JSON.stringify(part)}: write key=value, key!=value, key in (a,b), key or !key`,
  )
}

/**
 * Whether the server would select an object by these flags, in any namespace.
 * @throws KubectlError naming the invalid part.
 */
export function selects({
  fieldSelector,
  selector,
}: Pick<SelectionFlags, 'fieldSelector' | 'selector'>): (object: KubeObject) => boolean {
  const labelled = selector === undefined ? undefined : labelSelectorOf(selector)
  const matches = fieldSelector === undefined ? undefined : fieldMatch(fieldSelector)
  return (object) =>
    (labelled === undefined || matchesSelector(labelled, object.metadata.labels ?? {})) &&
    (matches === undefined || matches(object))
}

/**
 * Evaluates a field selector (`status.phase=Running,spec.nodeName!=a`) on the client.
 * @throws KubectlError naming the invalid part.
 */
export function fieldMatch(text: string): (object: KubeObject) => boolean {
  const terms = text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const match = /^([\w.]+)(==|=|!=)(.*)$/s.exec(part)
      if (match === null)
        throw new KubectlError(
          `error: invalid field selector ${JSON.stringify(part)}: write field=value or field!=value`,
        )
      const [, path = '', operator, value] = match
      return { path: path.split('.'), isEqual: operator !== '!=', value }
    })
  return (object) => terms.every(({ path, isEqual, value }) => (textAt(object, path) === value) === isEqual)
}

/** The server treats a missing field as empty. */
function textAt(object: unknown, path: readonly string[]): string {
  let value: unknown = object
  for (const name of path)
    value =
      typeof value === 'object' && value !== null
        ? ownValue(value as Readonly<Record<string, unknown>>, name)
        : undefined
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : ''
}
