/** Kubernetes' rules for label expressions, selectors and taints, spelled out plainly. */
import { type LabelSelector, normalizedLabel, type PodSpec, type Taint, type Toleration } from '@tenon/api'

export type Labels = Readonly<Record<string, string>>

/** One expression on a label, of a pod, a pool, an instance type or an offering. */
export interface Expression {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

/** Whether a label with `value` (undefined: no such label) satisfies one expression. */
export function holds({ operator, values = [] }: Expression, value: string | undefined): boolean {
  if (operator === 'DoesNotExist') return value === undefined
  if (operator === 'NotIn') return value === undefined || !values.includes(value)
  if (value === undefined) return false
  if (operator === 'Exists') return true
  if (operator === 'In') return values.includes(value)
  const number = integer(value)
  const bound = integer(values[0] ?? '')
  if (number === undefined || bound === undefined) return false
  if (operator === 'Gt') return number > bound
  if (operator === 'Gte') return number >= bound
  if (operator === 'Lt') return number < bound
  if (operator === 'Lte') return number <= bound
  return false
}

function integer(text: string): bigint | undefined {
  return /^[+-]?\d+$/.test(text) ? BigInt(text) : undefined
}

/** The expressions on one key, whichever of its spellings they use. */
export function on(key: string, expressions: readonly Expression[]): readonly Expression[] {
  return expressions.filter((expression) => normalizedLabel(expression.key) === key)
}

/** Every key that the expressions speak of, in its present spelling. */
export function keysOf(...lists: readonly (readonly Expression[])[]): ReadonlySet<string> {
  return new Set(lists.flat().map((expression) => normalizedLabel(expression.key)))
}

/** Values worth trying for a key: all that are named, those beside a bound, and one nobody names. */
export function valuesToTry(expressions: readonly Expression[]): readonly string[] {
  const named = expressions.flatMap((expression) => expression.values ?? [])
  const beside = named.flatMap((value) => {
    const number = integer(value)
    return number === undefined ? [] : [String(number - 1n), String(number + 1n)]
  })
  return [...new Set([...named, ...beside, '0', 'named-by-nobody'])]
}

/** Whether some value, or no label at all, satisfies every expression (all on one key). */
export function canHold(expressions: readonly Expression[]): boolean {
  const states = [undefined, ...valuesToTry(expressions)]
  return states.some((state) => expressions.every((expression) => holds(expression, state)))
}

/** Every label as the expression that it has its value. */
export function asExpressions(labels: Labels | undefined): readonly Expression[] {
  return Object.entries(labels ?? {}).map(([key, value]) => ({ key, operator: 'In', values: [value] }))
}

/** Labels under their present spelling. */
export function normalised(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [normalizedLabel(key), value]))
}

/** A pod's node selector with each of its required node affinity terms; one of them must hold. */
export function nodeTerms(spec: PodSpec): readonly (readonly Expression[])[] {
  const selector = asExpressions(spec.nodeSelector)
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms === undefined
    ? [selector]
    : terms.map((term) => [...selector, ...(term.matchExpressions ?? [])])
}

/** Whether one of the terms holds of a node with these (normalised) labels. */
export function anyTermHolds(terms: readonly (readonly Expression[])[], labels: Labels): boolean {
  return terms.some((term) => term.every((each) => holds(each, labels[normalizedLabel(each.key)])))
}

/** Whether a label selector selects an object; none selects nothing, an empty one everything. */
export function selectorMatches(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return false
  const expressions = [...asExpressions(selector.matchLabels), ...(selector.matchExpressions ?? [])]
  return expressions.every((expression) => holds(expression, labels?.[expression.key]))
}

const canonicalInteger = /^(0|-?[1-9]\d*)$/

function tolerated(taint: Taint, { key = '', operator, value = '', effect }: Toleration): boolean {
  const effectText: string = effect ?? ''
  if (effectText !== '' && effectText !== taint.effect) return false
  if (key !== '' && key !== taint.key) return false
  const has = taint.value ?? ''
  if (operator === 'Exists') return true
  if (operator === 'Lt' || operator === 'Gt') {
    if (!canonicalInteger.test(has) || !canonicalInteger.test(value)) return false
    return operator === 'Lt' ? BigInt(has) < BigInt(value) : BigInt(has) > BigInt(value)
  }
  return ((operator ?? '') as string) === '' || operator === 'Equal' ? has === value : false
}

/** Taints the pod does not tolerate; soft ones only if asked for. */
export function untoleratedTaints(
  taints: readonly Taint[],
  spec: PodSpec,
  softCounts: boolean,
): readonly Taint[] {
  return taints.filter(
    (taint) =>
      (softCounts || taint.effect !== 'PreferNoSchedule') &&
      !(spec.tolerations ?? []).some((toleration) => tolerated(taint, toleration)),
  )
}
