/** Node selectors, evaluated as kube-scheduler does. */
import { ownValue } from './own.ts'
import type { LabelSelectorRequirement, NodeSelectorRequirement, NodeSelectorTerm } from './objects.ts'

/** Sets of long value lists: a selector is evaluated for thousands of objects. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>()
const mostScanned = 32

function lists(values: readonly string[], value: string): boolean {
  if (values.length <= mostScanned) return values.includes(value)
  let set = sets.get(values)
  if (set === undefined) {
    set = new Set(values)
    sets.set(values, set)
  }
  return set.has(value)
}

/**
 * Whether a label meets a requirement of a selector.
 * @param value undefined if the object does not have the label.
 */
export function meetsRequirement(
  { operator, values = [] }: NodeSelectorRequirement | LabelSelectorRequirement,
  value: string | undefined,
): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && lists(values, value)
    case 'NotIn':
      return value === undefined || !lists(values, value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
    case 'Lt': {
      const [number, bound] = [wholeNumber(value), values.length === 1 ? wholeNumber(values[0]) : undefined]
      if (number === undefined || bound === undefined) return false
      return operator === 'Gt' ? number > bound : number < bound
    }
  }
}

/** Whether a node meets a term; an empty term matches no node. */
export function meetsNodeSelectorTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  nodeName: string,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false
  return (
    matchExpressions.every((one) => meetsRequirement(one, ownValue(labels, one.key))) &&
    matchFields.every((one) => meetsRequirement(one, one.key === 'metadata.name' ? nodeName : undefined))
  )
}

const int64Max = 9_223_372_036_854_775_807n

/** Parses a signed 64-bit integer; undefined if the text is anything else. */
function wholeNumber(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined
  const number = BigInt(text.replace(/^\+/, ''))
  return number > int64Max || number < -int64Max - 1n ? undefined : number
}
