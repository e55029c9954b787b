/** The topology rules a pod brings along (scheduling.md 9.1). */
import {
  type LabelSelector,
  type PodAffinityTerm,
  type PodSpec,
  type TopologySpreadConstraint,
  ownValue,
} from '@tenon/api'
import { labels as names, normalizedLabel } from '@tenon/api'
import { valueSet } from '../../requirements/requirement.ts'
import { merged, requiredAlternatives, requirementsOf } from '../../requirements/requirements.ts'
import type { SelectablePod } from '../../snapshot/problem.ts'
import type { GroupRule } from './group.ts'
import type { NodeFilter } from './node-filter.ts'

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

/**
 * The rules of a pod; `matches` decides about label selectors.
 * @param spec what is left of the pod's wishes.
 * @param whole the pod as it was made: to kube-scheduler all its node affinity terms count, whichever is met.
 */
export function podRules(
  spec: PodSpec,
  whole: PodSpec,
  pod: SelectablePod,
  namespaces: Namespaces,
  matches: Match,
): PodRules {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {}
  const spreads = spec.topologySpreadConstraints ?? []
  if (podAffinity === undefined && podAntiAffinity === undefined) {
    if (spreads.length === 0) return noRules
    return { own: spreads.map((constraint) => spreadRule(constraint, spreads, whole, pod)), inverse: [] }
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
      ...spreads.map((constraint) => spreadRule(constraint, spreads, whole, pod)),
      ...affinity.map(term('affinity')),
      ...anti.map(term('antiAffinity')),
    ],
    inverse: requiredAnti.map(term('antiAffinity')),
  }
}

function spreadRule(
  constraint: TopologySpreadConstraint,
  all: readonly TopologySpreadConstraint[],
  spec: PodSpec,
  pod: SelectablePod,
): GroupRule {
  const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint
  const honored = nodeAffinityPolicy === 'Honor' ? requiredAlternatives(spec) : [requirementsOf([])]
  return {
    kind: 'spread',
    key: normalizedLabel(constraint.topologyKey),
    namespaces: new Set([pod.namespace]),
    selector:
      constraint.labelSelector && withLabelKeys(constraint.labelSelector, constraint.matchLabelKeys, pod),
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains,
    filter: {
      alternatives: restrictions(honored, otherKeys(constraint, all)),
      tolerations: nodeTaintsPolicy === 'Honor' ? { list: spec.tolerations ?? [], soft: false } : undefined,
    },
  }
}

/** kube-scheduler counts a node only if it has the keys of all constraints that are as hard as this one. */
function otherKeys(
  { topologyKey, whenUnsatisfiable }: TopologySpreadConstraint,
  all: readonly TopologySpreadConstraint[],
): readonly string[] {
  const keys = all
    .filter((other) => other.whenUnsatisfiable === whenUnsatisfiable)
    .map((other) => normalizedLabel(other.topologyKey))
  // Every node has a host name.
  return [...new Set(keys)].filter((key) => key !== normalizedLabel(topologyKey) && key !== names.hostname)
}

/** What nodes must meet to count, each entry enough; none when every node counts. */
function restrictions(
  alternatives: NodeFilter['alternatives'],
  keys: readonly string[],
): NodeFilter['alternatives'] {
  const present = requirementsOf(keys.map((key) => valueSet({ key, operator: 'Exists' })))
  const restricted = alternatives.map((wanted) => merged(wanted, present))
  return restricted.some((wanted) => wanted.size === 0) ? [] : restricted
}

function withLabelKeys(
  selector: LabelSelector,
  keys: readonly string[] | undefined,
  pod: SelectablePod,
): LabelSelector {
  const added = (keys ?? []).flatMap((key) => {
    const value = ownValue(pod.labels, key)
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
    filter: { alternatives: [], tolerations: { list: spec.tolerations ?? [], soft: true } },
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
