import { type LabelSelector, type LabelSelectorRequirement, ownValue } from '@tenon/api'
import type { StoredObject } from '../contract.ts'
import { isQualifiedName } from './verbs/metadata.ts'
import type { Served } from './kinds/registry.ts'
import { badRequest } from './http/status.ts'

type Labels = Readonly<Record<string, string>>
type LabelMatcher = (labels: Labels) => boolean

/** A label selector object as a predicate; the empty selector matches everything. */
export function compileLabelSelector(selector: LabelSelector): LabelMatcher {
  const equal = Object.entries(selector.matchLabels ?? {})
  const expressions = (selector.matchExpressions ?? []).map(compileRequirement)
  return (labels) =>
    equal.every(([key, value]) => ownValue(labels, key) === value) &&
    expressions.every((matches) => matches(labels))
}

function compileRequirement(requirement: LabelSelectorRequirement): LabelMatcher {
  const { key, operator } = requirement
  const values = new Set<string | undefined>(requirement.values ?? [])
  switch (operator) {
    case 'In':
      return (labels) => values.has(ownValue(labels, key))
    case 'NotIn':
      return (labels) => !values.has(ownValue(labels, key))
    case 'Exists':
      return (labels) => ownValue(labels, key) !== undefined
    case 'DoesNotExist':
      return (labels) => ownValue(labels, key) === undefined
  }
}

const setRequirement = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/
const comparison = /^([^=!<>\s]+)\s*(==|=|!=|>|<)\s*([^=!<>\s]*)$/

/** Parses the `labelSelector` of a query. @throws ApiError 400. */
export function parseLabelSelector(text: string): LabelMatcher {
  const matchers = splitOutsideParentheses(text).map((part) => labelRequirement(part.trim(), text))
  return (labels) => matchers.every((matches) => matches(labels))
}

function labelRequirement(part: string, whole: string): LabelMatcher {
  const set = setRequirement.exec(part)
  if (set !== null) {
    const [, key, operator, list] = set as unknown as [string, string, string, string]
    const values = list.split(',').map((value) => value.trim())
    return compileRequirement({
      key: checkedKey(key, whole),
      operator: operator === 'in' ? 'In' : 'NotIn',
      values,
    })
  }
  const compared = comparison.exec(part)
  if (compared !== null) {
    const [, key, operator, value] = compared as unknown as [string, string, string, string]
    return compareLabel(checkedKey(key, whole), operator, value)
  }
  if (part.startsWith('!'))
    return compileRequirement({ key: checkedKey(part.slice(1).trim(), whole), operator: 'DoesNotExist' })
  return compileRequirement({ key: checkedKey(part, whole), operator: 'Exists' })
}

function compareLabel(key: string, operator: string, value: string): LabelMatcher {
  if (operator === '!=') return (labels) => ownValue(labels, key) !== value
  if (operator === '>') return (labels) => Number.parseInt(ownValue(labels, key) ?? '', 10) > Number(value)
  if (operator === '<') return (labels) => Number.parseInt(ownValue(labels, key) ?? '', 10) < Number(value)
  return (labels) => ownValue(labels, key) === value
}

function checkedKey(key: string, whole: string): string {
  if (isQualifiedName(key)) return key
  throw badRequest(`unable to parse requirement: invalid label key "${key}" in selector "${whole}"`)
}

function splitOutsideParentheses(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '(') depth++
    else if (text[index] === ')') depth--
    else if (text[index] === ',' && depth === 0) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  parts.push(text.slice(start))
  return parts.filter((part) => part.trim() !== '')
}

/** One comparison of a field selector. */
interface FieldTerm {
  readonly field: string
  readonly equal: boolean
  readonly value: string
}

/** Which objects of a resource a request wants. */
export interface Selection {
  readonly matches: (object: StoredObject) => boolean
  /** The only name that can match, when the field selector pins it. */
  readonly name: string | undefined
  /** False when every object matches. */
  readonly narrows: boolean
}

/** Everything. */
const everything: Selection = { matches: () => true, name: undefined, narrows: false }

/** Compiles the selectors of a query. @throws ApiError 400 for unknown fields and bad syntax. */
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

/** Names of selectable fields: asked of an empty object, as they do not depend on the object. */
function selectable(served: Served): string[] {
  const { kind } = served.definition
  const probe = { apiVersion: served.apiVersion, kind, metadata: { name: '' } } as StoredObject
  return Object.keys(served.definition.selectableFields(probe))
}
