import { meetsRequirement, ownValue, parseSelector } from '@tenon/api'
import type { StoredObject } from '../contract.ts'
import { isQualifiedName } from './verbs/metadata.ts'
import type { Served } from './kinds/registry.ts'
import { badRequest } from './http/status.ts'

type Labels = Readonly<Record<string, string>>
type LabelMatcher = (labels: Labels) => boolean

/** Parses the `labelSelector` of a query. @throws ApiError 400. */
export function parseLabelSelector(text: string): LabelMatcher {
  const read = parseSelector(text)
  const wrong =
    'unread' in read ? read.unread : read.requirements.find(({ key }) => !isQualifiedName(key))?.key
  if ('unread' in read || wrong !== undefined)
    throw badRequest(`unable to parse requirement: invalid label key "${wrong}" in selector "${text}"`)
  return (labels) => read.requirements.every((one) => meetsRequirement(one, ownValue(labels, one.key)))
}

/** One comparison of a field selector. */
interface FieldTerm {
  readonly field: string
  readonly equal: boolean
  readonly value: string
}

/** Which objects of a resource a request selects. */
export interface Selection {
  readonly matches: (object: StoredObject) => boolean
  /** The only name that can match, if the field selector has one. */
  readonly name: string | undefined
  /** False if every object matches. */
  readonly narrows: boolean
}

/** Everything. */
const everything: Selection = { matches: () => true, name: undefined, narrows: false }

/**
 * Compiles the selectors of a query.
 * @throws ApiError 400 for unknown fields and syntax errors.
 */
export function compileSelection(served: Served, query: URLSearchParams): Selection {
  const labelText = query.get('labelSelector') ?? ''
  const fieldText = query.get('fieldSelector') ?? ''
  if (labelText === '' && fieldText === '') return everything
  const labelMatches = parseLabelSelector(labelText)
  const terms = parseFieldSelector(served, fieldText)
  const { selectableFields } = served.definition
  const beyondMeta = terms.some(({ field }) => !field.startsWith('metadata.'))
  const matches = (object: StoredObject) => {
    if (labelText !== '' && !labelMatches(object.metadata.labels ?? {})) return false
    if (terms.length === 0) return true
    const values = {
      ...(beyondMeta ? selectableFields(object) : {}),
      'metadata.name': object.metadata.name,
      'metadata.namespace': object.metadata.namespace ?? '',
    } as Readonly<Record<string, string>>
    return terms.every(({ field, equal, value }) => ((ownValue(values, field) ?? '') === value) === equal)
  }
  const name = terms.find(({ field, equal }) => field === 'metadata.name' && equal)?.value
  return { matches, name, narrows: true }
}

function parseFieldSelector(served: Served, text: string): FieldTerm[] {
  if (text === '') return []
  const known = new Set(['metadata.name', 'metadata.namespace', ...selectable(served)])
  return text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const term = fieldTerm(part.trim(), text)
      if (!known.has(term.field))
        throw badRequest(
          `Unable to find "${served.apiVersion}, Resource=${served.definition.plural}" that match label selector "", field selector "${text}": field label not supported: ${term.field}`,
        )
      return term
    })
}

function fieldTerm(part: string, whole: string): FieldTerm {
  const match = /^([^=!]+)(==|!=|=)(.*)$/.exec(part)
  if (match === null) throw badRequest(`invalid field selector "${whole}": invalid term "${part}"`)
  const [, field, operator, value] = match as unknown as [string, string, string, string]
  return { field: field.trim(), equal: operator !== '!=', value: value.trim() }
}

/** Names of selectable fields. They are the same for all objects of a kind, so an empty one will do. */
function selectable(served: Served): string[] {
  const { kind } = served.definition
  const probe = { apiVersion: served.apiVersion, kind, metadata: { name: '' } } as StoredObject
  return Object.keys(served.definition.selectableFields(probe))
}
