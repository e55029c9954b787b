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
import type { SelectablePod } from '../../input/problem.ts'
import { type GroupRule, type PodSelection, selectionIdentity } from './group.ts'
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
 * @param whole the pod as it was made: to kube-scheduler all its node affinity terms and constraints count,
 *   whichever are met. Rules that are left after relaxation are therefore rules that were there before.
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
  const spread = (each: TopologySpreadConstraint) => spreadRule(each, whole, pod)
  if (podAffinity === undefined && podAntiAffinity === undefined) {
    if (spreads.length === 0) return noRules
    return { own: spreads.map(spread), inverse: [] }
  }
  const requiredAnti = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const preferredAnti = podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const required = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const preferred = podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const selection = (term: PodAffinityTerm): PodSelection => ({
    namespaces: termNamespaces(term, pod, namespaces, matches),
    selector: term.labelSelector,
  })
  const rule =
    (kind: 'affinity' | 'antiAffinity', all: readonly PodAffinityTerm[] = []) =>
    (term: PodAffinityTerm) =>
      affinityRule(kind, term, whole, selection(term), all.map(selection))
  return {
    own: [
      ...spreads.map(spread),
      // To kube-scheduler a pod meets a required term only if it is selected by all of them.
      ...required.map(rule('affinity', required)),
      ...preferred.map((each) => each.podAffinityTerm).map(rule('affinity')),
      ...[...requiredAnti, ...preferredAnti.map((each) => each.podAffinityTerm)].map(rule('antiAffinity')),
    ],
    inverse: requiredAnti.map(rule('antiAffinity')),
  }
}

function spreadRule(constraint: TopologySpreadConstraint, whole: PodSpec, pod: SelectablePod): GroupRule {
  const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint
  const honored = nodeAffinityPolicy === 'Honor' ? requiredAlternatives(whole) : [requirementsOf([])]
  return {
    kind: 'spread',
    key: normalizedLabel(constraint.topologyKey),
    namespaces: new Set([pod.namespace]),
    selector: constraint.labelSelector && spreadSelector(constraint.labelSelector, constraint, pod),
    also: [],
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains,
    filter: {
      alternatives: restrictions(honored, otherKeys(constraint, whole.topologySpreadConstraints ?? [])),
      tolerations: nodeTaintsPolicy === 'Honor' ? (whole.tolerations ?? []) : undefined,
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

/** The pods that kube-scheduler counts; it counts none for a selector without any requirement. */
function spreadSelector(
  selector: LabelSelector,
  { matchLabelKeys = [] }: TopologySpreadConstraint,
  pod: SelectablePod,
): LabelSelector | undefined {
  const added = matchLabelKeys.flatMap((key) => {
    const value = ownValue(pod.labels, key)
    return value === undefined ? [] : [{ key, operator: 'In' as const, values: [value] }]
  })
  const { matchLabels = {}, matchExpressions = [] } = selector
  const expressions = [...matchExpressions, ...added]
  if (Object.keys(matchLabels).length === 0 && expressions.length === 0) return undefined
  return added.length === 0 ? selector : { ...selector, matchExpressions: expressions }
}

/** @param all what else must select the pods. */
function affinityRule(
  kind: 'affinity' | 'antiAffinity',
  { topologyKey }: PodAffinityTerm,
  whole: PodSpec,
  own: PodSelection,
  all: readonly PodSelection[],
): GroupRule {
  const others = new Map(all.map((selection) => [selectionIdentity(selection), selection]))
  others.delete(selectionIdentity(own))
  return {
    kind,
    key: normalizedLabel(topologyKey),
    ...own,
    also: [...others.values()],
    maxSkew: Number.POSITIVE_INFINITY,
    minDomains: undefined,
    // No node is omitted, but only domains that the pod can reach through their taints are known.
    filter: { alternatives: [], tolerations: whole.tolerations ?? [] },
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
