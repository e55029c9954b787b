/**
 * Whether hard topology spread constraints hold in the end, in a form that is right for any order in
 * which the pods may have been placed.
 *
 * Pods with equal constraint, node rules and labels are a class. Take the last pod of a class that
 * went to domain d: at that moment d held at least the pods bound there and the class's others, and
 * the emptiest domain held at most what it holds in the end. So `bound(d) + class(d) - least` must be
 * within maxSkew, whatever came in between. As for kube-scheduler, every required node affinity term counts,
 * and a node counts only if it has the keys of all hard constraints.
 */
import {
  labels as names,
  normalizedLabel,
  type Pod,
  type Taint,
  type TopologySpreadConstraint,
} from '@tenon/api'
import type { PoolInput, SchedulingInput } from '../../input/input.ts'
import {
  anyTermHolds,
  type Expression,
  holds,
  keysOf,
  type Labels,
  nodeTerms,
  on,
  selectorMatches,
  untoleratedTaints,
} from './labels.test-support.ts'
import { agree, allocatableWith, poolExpressions } from './launches.test-support.ts'
import { nameOf, nodeLabels } from './nodes.test-support.ts'
import { demandOf, lacking, total } from './demands.test-support.ts'
import { isSpread, type Located } from './topology.test-support.ts'

/** Violations of `DoNotSchedule` constraints. */
export function checkSpread(input: SchedulingInput, located: readonly Located[]): readonly string[] {
  const counted = located.filter(isSpread)
  const classes = new Map<string, { constraint: TopologySpreadConstraint; members: Located[] }>()
  for (const each of counted.filter((one) => one.isNew)) {
    for (const constraint of each.pod.spec.topologySpreadConstraints ?? []) {
      if (constraint.whenUnsatisfiable !== 'DoNotSchedule') continue
      const { spec, metadata } = each.pod
      const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
      const rules = [spec.nodeSelector, required, spec.tolerations, metadata.namespace, metadata.labels]
      const identity = JSON.stringify([constraint, ...rules])
      const known = classes.get(identity) ?? { constraint, members: [] }
      known.members.push(each)
      classes.set(identity, known)
    }
  }
  return [...classes.values()].flatMap(({ constraint, members }) =>
    checkClass(input, constraint, members, counted),
  )
}

function checkClass(
  input: SchedulingInput,
  constraint: TopologySpreadConstraint,
  members: readonly Located[],
  counted: readonly Located[],
): readonly string[] {
  const key = normalizedLabel(constraint.topologyKey)
  const open = members.filter((each) => each.domains(key).length !== 1)
  if (open.length > 0)
    return open.map((each) => `${nameOf(each.pod)} on ${each.place}: no single ${key}, over which it spreads`)
  const pod = members[0]?.pod as Pod
  const selects = (other: Pod) =>
    other.metadata.namespace === pod.metadata.namespace && isSelected(constraint, pod, other)
  const bound = counted.filter(
    (each) => !each.isNew && selects(each.pod) && counts(constraint, pod, each.node),
  )
  const batch = counted.filter((each) => each.isNew && selects(each.pod))
  const settled = members.filter((each) => counts(constraint, pod, each.node))
  const own = selects(pod) ? settled : []
  const inDomain = (list: readonly Located[], domain: string) =>
    list.filter((each) => each.domains(key).includes(domain)).length

  const known = knownDomains(input, constraint, pod, bound)
  const used = new Set(settled.flatMap((each) => each.domains(key)))
  const reachable = [...new Set([...known, ...used])]
  // Pods of the batch may turn up in domains that were not known; they can only make more of them.
  const most = new Set([...reachable, ...batch.flatMap((each) => each.domains(key))])
  const isShort = constraint.minDomains !== undefined && most.size < constraint.minDomains
  const least =
    key === names.hostname || isShort || reachable.length === 0
      ? 0
      : Math.min(...reachable.map((domain) => inDomain([...bound, ...batch], domain)))
  return [...used]
    .filter((domain) => inDomain(bound, domain) + inDomain(own, domain) - least > constraint.maxSkew)
    .map(
      (domain) =>
        `${nameOf(pod)} and its like: spread over ${key} exceeds maxSkew ${constraint.maxSkew} in ${domain} ` +
        `(${inDomain(bound, domain)} bound, ${inDomain(own, domain)} new, least ${least})`,
    )
}

function isSelected(constraint: TopologySpreadConstraint, pod: Pod, other: Pod): boolean {
  const { matchLabels = {}, matchExpressions = [] } = constraint.labelSelector ?? {}
  const demands = [...Object.keys(matchLabels), ...matchExpressions].length
  const keys = (constraint.matchLabelKeys ?? []).filter((key) => pod.metadata.labels?.[key] !== undefined)
  if (demands + keys.length === 0) return false
  if (!selectorMatches(constraint.labelSelector, other.metadata.labels)) return false
  return (constraint.matchLabelKeys ?? []).every((key) => {
    const value = pod.metadata.labels?.[key]
    return value === undefined || other.metadata.labels?.[key] === value
  })
}

/** Whether the constraint's node policies let a node count; nodes to be launched always do. */
function counts(
  constraint: TopologySpreadConstraint,
  pod: Pod,
  node: { readonly labels: Labels; readonly taints: readonly Taint[] } | undefined,
): boolean {
  if (node === undefined) return true
  const terms = countedTerms(constraint, pod)
  if (!anyTermHolds(terms, { ...node.labels, [names.hostname]: node.labels[names.hostname] ?? '' }))
    return false
  return (
    constraint.nodeTaintsPolicy !== 'Honor' || untoleratedTaints(node.taints, pod.spec, false).length === 0
  )
}

/** What nodes that count must have, one of them. */
function countedTerms(
  constraint: TopologySpreadConstraint,
  { spec }: Pod,
): readonly (readonly Expression[])[] {
  const keys = (spec.topologySpreadConstraints ?? [])
    .filter((each) => each.whenUnsatisfiable === constraint.whenUnsatisfiable)
    .map((each): Expression => ({ key: each.topologyKey, operator: 'Exists' }))
    .filter(({ key }) => normalizedLabel(key) !== names.hostname && key !== constraint.topologyKey)
  const terms = constraint.nodeAffinityPolicy === 'Ignore' ? [[]] : nodeTerms(spec)
  return terms.map((term) => [...term, ...keys])
}

/** Domains that nodes have, and those that pools can launch. */
function knownDomains(
  input: SchedulingInput,
  constraint: TopologySpreadConstraint,
  pod: Pod,
  bound: readonly Located[],
): ReadonlySet<string> {
  const key = normalizedLabel(constraint.topologyKey)
  const domains = new Set(bound.flatMap((each) => each.domains(key)))
  for (const node of input.topology.nodes.values()) {
    const value = key === names.hostname ? node.hostname : node.labels[key]
    if (node.isCandidate && value !== undefined && counts(constraint, pod, node)) domains.add(value)
  }
  if (key === names.hostname)
    for (const node of input.nodes) domains.add(nodeLabels(node)[names.hostname] ?? node.name)
  else for (const pool of input.pools) addDomainsOf(pool, constraint, pod, input, domains)
  return domains
}

/** Adds the domains of nodes that a pool could launch with room for the pod, and that would count. */
function addDomainsOf(
  { nodePool, instanceTypes }: PoolInput,
  constraint: TopologySpreadConstraint,
  pod: Pod,
  { policy, daemons }: SchedulingInput,
  domains: Set<string>,
): void {
  const needed = total([pod.spec, ...daemons.map(({ spec }) => spec)].map(demandOf))
  const key = normalizedLabel(constraint.topologyKey)
  const { taints = [] } = nodePool.spec.template.spec
  if (constraint.nodeTaintsPolicy === 'Honor' && untoleratedTaints(taints, pod.spec, false).length > 0) return
  const own = poolExpressions(nodePool)
  const canGain = (term: readonly Expression[]) =>
    [...keysOf(term)].every(
      (wanted) =>
        on(wanted, own).length > 0 ||
        policy.wellKnownLabels.has(wanted) ||
        wanted === names.hostname ||
        on(wanted, term).every((each) => holds(each, undefined)),
    )
  const terms = countedTerms(constraint, pod).filter((term) => agree(own, term) && canGain(term))
  const isNewHost = (term: readonly Expression[]) =>
    on(names.hostname, term).every(({ operator }) => operator !== 'In')
  for (const type of instanceTypes) {
    const fitting = type.offerings.filter(
      (offering) => lacking(needed, allocatableWith(type, offering)).length === 0,
    )
    const nodes = fitting
      .map((offering) => offering.requirements)
      .map((offered) => [...type.requirements, ...offered])
      .filter((sold) => agree(own, type.requirements) && agree(own, sold))
      .flatMap((sold) => terms.map((term) => ({ sold, term })))
      .filter(({ sold, term }) => agree([...own, ...term], sold) && isNewHost(term))
    for (const { sold, term } of nodes) {
      const all = on(key, [...own, ...sold, ...term])
      const listed = all.filter((each) => each.operator === 'In').flatMap((each) => each.values ?? [])
      for (const value of listed) if (all.every((each) => holds(each, value))) domains.add(value)
    }
  }
}
