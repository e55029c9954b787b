/** The topology rules of a pod (scheduling.md 9.1). */
import {
  labels as names,
  type LabelSelector,
  matchesSelector,
  normalizedLabel,
  ownValue,
  type PodAffinityTerm,
  type PodSpec,
  type TopologySpreadConstraint,
} from '@tenon/api'
import { valueSet } from '../../requirements/requirement.ts'
import { merged, requiredAlternatives, requirementsOf } from '../../requirements/requirements.ts'
import type { SelectablePod } from '../problem/problem.ts'
import { type GroupRule, type PodSelection, selectionIdentity } from './group.ts'
import type { NodeFilter } from './node-filter.ts'

/** Labels of every namespace, for namespace selectors. */
export type Namespaces = ReadonlyMap<string, Readonly<Record<string, string>>>

export interface PodRules {
  /** Rules that decide where the pod goes, preferred ones included. */
  readonly own: readonly GroupRule[]
  /** Those of them that are preferred affinity. */
  readonly preferredAffinity: ReadonlySet<GroupRule>
  /** Required anti-affinity from the other side: it repels selected pods from this pod. */
  readonly inverse: readonly GroupRule[]
}

/**
 * Caches the rule of a part of a spec, as relaxed specs share most parts. Only valid for pods with the same labels and
 * namespace.
 */
export type Once = (part: object, make: () => GroupRule) => GroupRule

const noRules: PodRules = { own: [], preferredAffinity: new Set(), inverse: [] }

/**
 * @param spec the spec after relaxation.
 * @param whole the spec before relaxation: kube-scheduler counts nodes by all node affinity terms and constraints, so a rule
 *   stays the same when others are relaxed.
 */
export function podRules(
  spec: PodSpec,
  whole: PodSpec,
  pod: SelectablePod,
  namespaces: Namespaces,
  once: Once,
): PodRules {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {}
  const spreads = spec.topologySpreadConstraints ?? []
  const spread = (each: TopologySpreadConstraint) => once(each, () => spreadRule(each, whole, pod))
  if (podAffinity === undefined && podAntiAffinity === undefined) {
    if (spreads.length === 0) return noRules
    return { ...noRules, own: spreads.map(spread) }
  }
  const requiredAnti = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const preferredAnti = podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const required = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const preferred = podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const selection = (term: PodAffinityTerm): PodSelection => ({
    namespaces: termNamespaces(term, pod, namespaces),
    selector: term.labelSelector,
  })
  let together: readonly PodSelection[] | undefined
  const rule =
    (kind: 'affinity' | 'antiAffinity', all: readonly PodAffinityTerm[] = []) =>
    (term: PodAffinityTerm) =>
      once(term, () => {
        if (all.length > 1) together ??= distinct(all.map(selection))
        return affinityRule(kind, term, whole, selection(term), all.length > 1 ? (together ?? []) : [])
      })
  const preferredAffinity = preferred.map((each) => each.podAffinityTerm).map(rule('affinity'))
  return {
    own: [
      ...spreads.map(spread),
      // kube-scheduler counts a pod for required affinity only if all terms select it.
      ...required.map(rule('affinity', required)),
      ...preferredAffinity,
      ...[...requiredAnti, ...preferredAnti.map((each) => each.podAffinityTerm)].map(rule('antiAffinity')),
    ],
    preferredAffinity: new Set(preferredAffinity),
    inverse: requiredAnti.map(rule('antiAffinity')),
  }
}

function spreadRule(constraint: TopologySpreadConstraint, whole: PodSpec, pod: SelectablePod): GroupRule {
  const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint
  const honored = nodeAffinityPolicy === 'Honor' ? honoredBy(whole) : everyNode
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

const everyNode: NodeFilter['alternatives'] = [requirementsOf([])]
const honoredBySpec = new WeakMap<PodSpec, NodeFilter['alternatives']>()

function honoredBy(whole: PodSpec): NodeFilter['alternatives'] {
  let honored = honoredBySpec.get(whole)
  if (honored === undefined) {
    honored = requiredAlternatives(whole)
    honoredBySpec.set(whole, honored)
  }
  return honored
}

/** kube-scheduler counts only nodes with the keys of all constraints of the same `whenUnsatisfiable`. */
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

/** Alternatives of which a node must meet one to count; empty when every node counts. */
function restrictions(
  alternatives: NodeFilter['alternatives'],
  keys: readonly string[],
): NodeFilter['alternatives'] {
  if (keys.length === 0) return alternatives.some((wanted) => wanted.size === 0) ? [] : alternatives
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

function distinct(selections: readonly PodSelection[]): readonly PodSelection[] {
  const byIdentity = new Map(selections.map((selection) => [selectionIdentity(selection), selection]))
  return byIdentity.size < 2 ? [] : [...byIdentity.values()]
}

/** @param also what else must select the pods. */
function affinityRule(
  kind: 'affinity' | 'antiAffinity',
  { topologyKey }: PodAffinityTerm,
  whole: PodSpec,
  own: PodSelection,
  also: readonly PodSelection[],
): GroupRule {
  return {
    kind,
    key: normalizedLabel(topologyKey),
    ...own,
    also,
    maxSkew: Number.POSITIVE_INFINITY,
    minDomains: undefined,
    // No node is omitted, but only domains that the pod can reach through their taints are known.
    filter: { alternatives: [], tolerations: whole.tolerations ?? [] },
  }
}

/** The namespaces of a term: listed, selected, or else the pod's own. */
function termNamespaces(
  { namespaces: listed = [], namespaceSelector }: PodAffinityTerm,
  pod: SelectablePod,
  known: Namespaces,
): ReadonlySet<string> {
  if (namespaceSelector === undefined) return new Set(listed.length === 0 ? [pod.namespace] : listed)
  const selected = [...known]
    .filter(([, labels]) => matchesSelector(namespaceSelector, labels))
    .map(([name]) => name)
  return new Set([...listed, ...selected])
}
