/** Requirements on labels as kube-scheduler decides about them. */
import { ownValue } from './own.ts'
import type { LabelSelectorRequirement, NodeSelectorRequirement, NodeSelectorTerm } from './objects.ts'

/** Long lists as sets: a selector is asked about thousands of objects. */
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

/** Whether a label with this value, undefined for one that is not there, meets a requirement of any selector. */
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

/** Whether a node meets one term; a term without requirements meets no node. */
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

/** The 64-bit integer that all of the text is, with or without a sign. */
function wholeNumber(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined
  const number = BigInt(text.replace(/^\+/, ''))
  return number > int64Max || number < -int64Max - 1n ? undefined : number
}
