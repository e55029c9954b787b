/** Label and field selectors in their text form. */
import { type KubeObject, type LabelSelector, type LabelSelectorRequirement, ownValue } from '@tenon/api'
import { KubectlError } from '../errors.ts'

const inSet = /^([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)$/
const equality = /^([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)$/
const existence = /^(!?)\s*([^\s=!,()]+)$/

/**
 * `a=b,c!=d,e in (f,g),h notin (i),j,!k` as a selector.
 * @throws KubectlError naming the part that cannot be read.
 */
export function labelSelectorOf(text: string): LabelSelector {
  const parts = splitOutside(text).map((part) => part.trim())
  return { matchExpressions: parts.filter((part) => part !== '').map(requirementOf) }
}

function requirementOf(part: string): LabelSelectorRequirement {
  const set = inSet.exec(part)
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return { key, operator: operator === 'in' ? 'In' : 'NotIn', values }
  }
  const equal = equality.exec(part)
  if (equal !== null) {
    const [, key = '', operator, value = ''] = equal
    return { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] }
  }
  const exists = existence.exec(part)
  if (exists === null)
    throw new KubectlError(
      `error: unable to parse the label selector at ${JSON.stringify(part)}: write key=value, key!=value, key in (a,b), key or !key`,
    )
  const [, not, key = ''] = exists
  return { key, operator: not === '!' ? 'DoesNotExist' : 'Exists' }
}

/** Splits at commas where no parenthesis is open. */
function splitOutside(text: string): readonly string[] {
  const parts: string[] = []
  let [depth, part] = [0, '']
  for (const letter of text) {
    if (letter === '(') depth++
    else if (letter === ')') depth--
    if (letter === ',' && depth === 0) {
      parts.push(part)
      part = ''
    } else part += letter
  }
  return [...parts, part]
}

/** Whether an object of a file is one that the server would select by `text`. */
export type FieldMatch = (object: KubeObject) => boolean

/**
 * A field selector (`status.phase=Running,spec.nodeName!=a`) for objects that no server selects.
 * @throws KubectlError naming the part that cannot be read.
 */
export function fieldMatch(text: string): FieldMatch {
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

/** The server takes a field that is absent for an empty text. */
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
