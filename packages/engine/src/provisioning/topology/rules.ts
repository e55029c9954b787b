/** The topology rules a pod brings along (scheduling.md 9.1). */
import type { LabelSelector, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '@tenon/api'
import { normalizedLabel } from '@tenon/api'
import { requiredAlternatives } from '../../requirements/requirements.ts'
import type { SelectablePod } from '../../snapshot/problem.ts'
import type { GroupRule, NodeFilter } from './group.ts'

/** Labels of every namespace, for namespace selectors. */
export type Namespaces = ReadonlyMap<string, Readonly<Record<string, string>>>

export interface PodRules {
  /** Rules that decide where the pod goes, preferred ones included. */
  readonly own: readonly GroupRule[]
  /** Required anti-affinity seen from the other side: keeps selected pods away from this one. */
  readonly inverse: readonly GroupRule[]
}

type Match = (selector: LabelSelector, labels: Readonly<Record<string, string>>) => boolean

const noRules: PodRules = { own: [], inverse: [] }

/** The rules of a pod with this spec; `matches` decides about label selectors. */
export function podRules(
  spec: PodSpec,
  pod: SelectablePod,
  namespaces: Namespaces,
  matches: Match,
): PodRules {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {}
  const spreads = spec.topologySpreadConstraints ?? []
  if (podAffinity === undefined && podAntiAffinity === undefined) {
    if (spreads.length === 0) return noRules
    return { own: spreads.map((constraint) => spreadRule(constraint, spec, pod)), inverse: [] }
  }
  const requiredAnti = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const preferredAnti = podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const affinity = [
    ...(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(
      (each) => each.podAffinityTerm,
    ),
  ]
  const anti = [...requiredAnti, ...preferredAnti.map((each) => each.podAffinityTerm)]
  const term = (kind: 'affinity' | 'antiAffinity') => (each: PodAffinityTerm) =>
    affinityRule(kind, each, spec, termNamespaces(each, pod, namespaces, matches))
  return {
    own: [
      ...spreads.map((constraint) => spreadRule(constraint, spec, pod)),
      ...affinity.map(term('affinity')),
      ...anti.map(term('antiAffinity')),
    ],
    inverse: requiredAnti.map(term('antiAffinity')),
  }
}

function spreadRule(constraint: TopologySpreadConstraint, spec: PodSpec, pod: SelectablePod): GroupRule {
  const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint
  return {
    kind: 'spread',
    key: normalizedLabel(constraint.topologyKey),
    namespaces: new Set([pod.namespace]),
    selector:
      constraint.labelSelector && withLabelKeys(constraint.labelSelector, constraint.matchLabelKeys, pod),
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains,
    filter: {
      alternatives: nodeAffinityPolicy === 'Honor' ? restrictions(spec) : [],
      tolerations: nodeTaintsPolicy === 'Honor' ? (spec.tolerations ?? []) : undefined,
    },
  }
}

/** The pod's own bounds on nodes; none when it has no bounds. */
function restrictions(spec: PodSpec): NodeFilter['alternatives'] {
  const alternatives = requiredAlternatives(spec)
  return alternatives.every((wanted) => wanted.size === 0) ? [] : alternatives
}

function withLabelKeys(
  selector: LabelSelector,
  keys: readonly string[] | undefined,
  pod: SelectablePod,
): LabelSelector {
  const added = (keys ?? []).flatMap((key) => {
    const value = pod.labels[key]
    return value === undefined ? [] : [{ key, operator: 'In' as const, values: [value] }]
  })
  if (added.length === 0) return selector
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), ...added] }
}

function affinityRule(
  kind: 'affinity' | 'antiAffinity',
  term: PodAffinityTerm,
  spec: PodSpec,
  namespaces: ReadonlySet<string>,
): GroupRule {
  return {
    kind,
    key: normalizedLabel(term.topologyKey),
    namespaces,
    selector: term.labelSelector,
    maxSkew: Number.POSITIVE_INFINITY,
    minDomains: undefined,
    // No node is left out, but only domains that the pod can reach through their taints are known.
    filter: { alternatives: [], tolerations: spec.tolerations ?? [] },
  }
}

/** The namespaces a term looks at: listed, selected, or else the pod's own. */
function termNamespaces(
  { namespaces: listed = [], namespaceSelector }: PodAffinityTerm,
  pod: SelectablePod,
  known: Namespaces,
  matches: Match,
): ReadonlySet<string> {
  if (namespaceSelector === undefined) return new Set(listed.length === 0 ? [pod.namespace] : listed)
  const selected = [...known].filter(([, labels]) => matches(namespaceSelector, labels)).map(([name]) => name)
  return new Set([...listed, ...selected])
}

/** Rules with the same identity share one group. */
export function ruleIdentity(rule: GroupRule): string {
  const { kind, key, namespaces, selector, maxSkew, minDomains, filter } = rule
  const alternatives = filter.alternatives.map((wanted) =>
    [...wanted.values()]
      .map((set) => [set.key, set.complement, [...set.values].toSorted(), String(set.gte), String(set.lte)])
      .toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
  )
  return JSON.stringify([
    kind,
    key,
    [...namespaces].toSorted(),
    selector,
    maxSkew === Number.POSITIVE_INFINITY ? null : maxSkew,
    minDomains,
    alternatives,
    filter.tolerations,
  ])
}
