import { meetsRequirement } from './node-selector.ts'
import type { LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement } from './objects.ts'
import { ownValue } from './own.ts'

type Labels = Readonly<Record<string, string>> | undefined

/** Whether a selector matches labels. A missing selector or null matches nothing, an empty one everything. */
export function matchesSelector(selector: LabelSelector | null | undefined, labels: Labels): boolean {
  if (selector === undefined || selector === null) return false
  for (const [key, value] of Object.entries(selector.matchLabels ?? {}))
    if (ownValue(labels, key) !== value) return false
  return (selector.matchExpressions ?? []).every((one) => meetsRequirement(one, ownValue(labels, one.key)))
}

const set = /^([^\s=!<>,()]+)\s+(in|notin)\s*\(([^()]*)\)$/
const comparison = /^([^\s=!<>,()]+)\s*(==|=|!=|<|>)\s*([^\s=!<>,()]*)$/
const presence = /^(!?)\s*([^\s=!<>,()]+)$/
const operators = {
  in: 'In',
  notin: 'NotIn',
  '=': 'In',
  '==': 'In',
  '!=': 'NotIn',
  '<': 'Lt',
  '>': 'Gt',
} as const

/** Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. Returns the first invalid part on failure. */
export function parseSelector(
  text: string,
): { readonly requirements: readonly NodeSelectorRequirement[] } | { readonly unread: string } {
  const requirements: NodeSelectorRequirement[] = []
  for (const part of text.split(/,(?![^()]*\))/).map((each) => each.trim())) {
    if (part === '') continue
    const requirement = requirementOf(part)
    if (requirement === undefined) return { unread: part }
    requirements.push(requirement)
  }
  return { requirements }
}

function requirementOf(part: string): NodeSelectorRequirement | undefined {
  const [, key, operator, list] = set.exec(part) ?? comparison.exec(part) ?? []
  if (key !== undefined && operator !== undefined && list !== undefined) {
    const values = list.split(',').map((value) => value.trim())
    return { key, operator: operators[operator as keyof typeof operators], values }
  }
  const [, not, name] = presence.exec(part) ?? []
  return name === undefined ? undefined : { key: name, operator: not === '!' ? 'DoesNotExist' : 'Exists' }
}

/** Prints a selector, sorted by label as Kubernetes does. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const parts = Object.entries(matchLabels).map(([key, value]) => [key, `${key}=${value}`] as const)
  const expressions = matchExpressions.map((one) => [one.key, expressionText(one)] as const)
  return [...parts, ...expressions]
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, part]) => part)
    .join(',')
}

function expressionText({ key, operator, values = [] }: LabelSelectorRequirement): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.toSorted().join(',')})`
    case 'NotIn':
      return `${key} notin (${values.toSorted().join(',')})`
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
  }
}
