import {
  type LabelSelector,
  type LabelSelectorRequirement,
  type NodeSelectorTerm,
  type PodSpec,
  ownValue,
} from '@tenon/api'

export type Labels = Readonly<Record<string, string>>

type Operator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'

/** One `key operator values` line of any selector. */
interface Requirement {
  readonly key: string
  readonly operator: Operator
  readonly values?: readonly string[]
}

/** A compiled label selector. Equal selectors have equal `key`s. */
export interface LabelMatcher {
  readonly key: string
  /** A `label=value` that every match carries, for indexing; undefined when there is none. */
  readonly pair: string | undefined
  /** Whether it asks for nothing, and so matches everything. */
  readonly isEmpty: boolean
  readonly matches: (labels: Labels) => boolean
}

/** A compiled `nodeSelector` plus required node affinity. */
export interface NodeMatcher {
  readonly key: string
  /** The only node names that can match, when the terms name nodes. */
  readonly names: readonly string[] | undefined
  readonly matches: (nodeName: string, labels: Labels) => boolean
}

/** Compiles a label selector; an absent one matches nothing, an empty one everything. */
export function labelMatcher(
  selector: LabelSelector | undefined,
  extra: readonly LabelSelectorRequirement[] = [],
): LabelMatcher {
  if (selector === undefined) return { key: 'none', pair: undefined, isEmpty: false, matches: () => false }
  const equalities = Object.entries(selector.matchLabels ?? {})
  const requirements: Requirement[] = [...(selector.matchExpressions ?? []), ...extra]
  for (const [key, value] of equalities) requirements.push({ key, operator: 'In', values: [value] })
  const exact = requirements.find((one) => one.operator === 'In' && one.values?.length === 1)
  return {
    key: JSON.stringify(
      requirements.map((one) => [one.key, one.operator, one.values ?? []]).toSorted(byText),
    ),
    pair: exact === undefined ? undefined : `${exact.key}=${exact.values?.[0] ?? ''}`,
    isEmpty: requirements.length === 0,
    matches: (labels) => requirements.every((one) => holds(one, ownValue(labels, one.key))),
  }
}

/** Compiles what a pod requires of its node; undefined when it takes any. */
export function nodeMatcher(spec: PodSpec): NodeMatcher | undefined {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const equalities = Object.entries(spec.nodeSelector ?? {})
  if (required === undefined && equalities.length === 0) return undefined
  const terms = required?.nodeSelectorTerms
  return {
    key: JSON.stringify([equalities.toSorted(byText), terms ?? null]),
    names: terms === undefined ? undefined : namedNodes(terms),
    matches: (nodeName, labels) =>
      equalities.every(([key, value]) => ownValue(labels, key) === value) &&
      (terms === undefined || terms.some((term) => termMatches(term, nodeName, labels))),
  }
}

/** Whether a node meets one term; a term without requirements meets no node. */
export function termMatches(term: NodeSelectorTerm, nodeName: string, labels: Labels): boolean {
  const expressions = term.matchExpressions ?? []
  const fields = term.matchFields ?? []
  if (expressions.length === 0 && fields.length === 0) return false
  return (
    expressions.every((one) => holds(one, ownValue(labels, one.key))) &&
    fields.every((one) => holds(one, one.key === 'metadata.name' ? nodeName : undefined))
  )
}

function holds(requirement: Requirement, value: string | undefined): boolean {
  const values = requirement.values ?? []
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return compares(value, values, (left, right) => left > right)
    case 'Lt':
      return compares(value, values, (left, right) => left < right)
  }
}

/** The numbers that Kubernetes compares; others match nothing. */
const least = -(2n ** 63n)
const greatest = 2n ** 63n - 1n
const integer = /^[+-]?\d+$/

function compares(
  value: string | undefined,
  values: readonly string[],
  order: (left: bigint, right: bigint) => boolean,
): boolean {
  const bound = values[0]
  if (value === undefined || bound === undefined || values.length !== 1) return false
  const [left, right] = [wholeNumber(value), wholeNumber(bound)]
  return left !== undefined && right !== undefined && order(left, right)
}

function wholeNumber(text: string): bigint | undefined {
  if (!integer.test(text)) return undefined
  const magnitude = BigInt(text.replace(/^[+-]/, ''))
  const number = text.startsWith('-') ? -magnitude : magnitude
  return number < least || number > greatest ? undefined : number
}

/** Nodes named by `metadata.name In` in every term, or undefined when some term names none. */
function namedNodes(terms: readonly NodeSelectorTerm[]): readonly string[] | undefined {
  const names = new Set<string>()
  for (const term of terms) {
    const named = term.matchFields?.find((one) => one.key === 'metadata.name' && one.operator === 'In')
    if (named === undefined) return undefined
    for (const name of named.values ?? []) names.add(name)
  }
  return [...names]
}

function byText(a: readonly unknown[], b: readonly unknown[]): number {
  const left = JSON.stringify(a)
  const right = JSON.stringify(b)
  return left < right ? -1 : left > right ? 1 : 0
}
