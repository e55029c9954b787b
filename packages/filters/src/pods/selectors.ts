import {
  type LabelSelector,
  type LabelSelectorRequirement,
  meetsNodeSelectorTerm,
  meetsRequirement,
  type NodeSelectorTerm,
  type PodSpec,
  ownValue,
} from '@tenon/api'

export type Labels = Readonly<Record<string, string>>

/** A compiled label selector. Equal selectors have equal `key`s. */
export interface LabelMatcher {
  readonly key: string
  /** A `label=value` that every matching object has, for indexes; undefined if there is none. */
  readonly pair: string | undefined
  /** Whether it has no requirements, and so matches everything. */
  readonly isEmpty: boolean
  readonly matches: (labels: Labels) => boolean
}

/** A compiled `nodeSelector` with required node affinity. */
export interface NodeMatcher {
  readonly key: string
  /** The only node names that can match; undefined if terms do not name nodes. */
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
  const requirements: LabelSelectorRequirement[] = [...(selector.matchExpressions ?? []), ...extra]
  for (const [key, value] of equalities) requirements.push({ key, operator: 'In', values: [value] })
  const exact = requirements.find((one) => one.operator === 'In' && one.values?.length === 1)
  return {
    key: JSON.stringify(
      requirements.map((one) => [one.key, one.operator, one.values ?? []]).toSorted(byText),
    ),
    pair: exact === undefined ? undefined : `${exact.key}=${exact.values?.[0] ?? ''}`,
    isEmpty: requirements.length === 0,
    matches: (labels) => requirements.every((one) => meetsRequirement(one, ownValue(labels, one.key))),
  }
}

/** Compiles what a pod requires of its node; undefined if any node will do. */
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
      (terms === undefined || terms.some((term) => meetsNodeSelectorTerm(term, nodeName, labels))),
  }
}

/** Nodes that the terms name with `metadata.name In`; undefined if some term names none. */
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
