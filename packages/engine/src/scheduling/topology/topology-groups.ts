/** The topology groups of a problem, and which of them bear on the pods of each shape (scheduling.md 9). */
import { intersection, oneOf, valueSet, type ValueSet } from '../../requirements/requirement.ts'
import type { RequirementStates } from '../../requirements/states.ts'
import type { Pace } from '../pace.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import type { Problem, SelectablePod } from '../problem/problem.ts'
import type { DomainUniverse } from './domains.ts'
import type { ExpectedPods } from './pod-counts.ts'
import {
  type GroupRule,
  type PodSelection,
  RuleIdentities,
  selectionIdentity,
  TopologyGroup,
} from './group.ts'
import { GroupIndex, type KnownValues } from './group-index.ts'
import type { NodeDomains } from './node-domains.ts'
import type { PodCounts } from './pod-counts.ts'
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
import { merged, requiredAlternatives, requirementsOf } from '../../requirements/requirements.ts'
import type { NodeFilter } from './node-filter.ts'

interface OwnRule {
  readonly group: TopologyGroup
  /** Whether the pod counts for its own rule. */
  readonly selfSelects: boolean
  readonly isPreferredAffinity: boolean
}

/** The groups that bear on pods of one shape. */
interface GroupsOfShape {
  readonly ownDomains: readonly OwnRule[]
  readonly ownHosts: readonly OwnRule[]
  /** Anti-affinity of other pods against this shape. */
  readonly repelledDomains: readonly TopologyGroup[]
  readonly repelledHosts: readonly TopologyGroup[]
  /** The shape's own required anti-affinity, as the pods see it that it repels. */
  readonly inverse: readonly TopologyGroup[]
  /** Affinity to hosts: only hosts that hold certain pods need to be asked. */
  readonly hostAffinity: OwnRule | undefined
  /** Groups that count pods of this shape; renewed when groups are added. */
  counting: readonly TopologyGroup[]
  countingVersion: number
}

export interface TopologyContext {
  readonly states: RequirementStates
  readonly universe: DomainUniverse
  readonly expected: ExpectedPods
  readonly pace: Pace
}

export class TopologyGroups {
  readonly #problem: Problem
  readonly #context: TopologyContext
  readonly #nodes: NodeDomains
  readonly #counts: PodCounts
  readonly #identities = new RuleIdentities()
  readonly #domainKeys = new Set<string>()
  readonly #byIdentity = new Map<string, TopologyGroup>()
  readonly #inverseByIdentity = new Map<string, TopologyGroup>()
  /** Rules by the part of the spec that states them, of pods that look the same to selectors. */
  readonly #rulesByPart = new WeakMap<SelectablePod, Map<object, GroupRule>>()
  readonly #byRule = new WeakMap<GroupRule, TopologyGroup>()
  readonly #inverseByRule = new WeakMap<GroupRule, TopologyGroup>()
  readonly #index: GroupIndex
  readonly #inverseIndex: GroupIndex
  readonly #ofShape: (GroupsOfShape | undefined)[] = []

  constructor(
    problem: Problem,
    context: TopologyContext,
    nodes: NodeDomains,
    counts: PodCounts,
    known: KnownValues,
  ) {
    this.#problem = problem
    this.#context = context
    this.#nodes = nodes
    this.#counts = counts
    this.#index = new GroupIndex(known)
    this.#inverseIndex = new GroupIndex(known)
    this.#addBoundAntiAffinity()
  }

  /** Labels that some rule about domains names. */
  get domainKeys(): ReadonlySet<string> {
    return this.#domainKeys
  }

  /** Adds the rules of these shapes. Anti-affinity comes first, as it binds all other shapes. */
  add(shapes: readonly PodShape[]): void {
    for (const shape of shapes) for (const rule of this.#rulesOf(shape).inverse) this.#inverseGroup(rule)
    for (const shape of shapes) this.of(shape)
  }

  of(shape: PodShape): GroupsOfShape {
    const known = this.#ofShape[shape.index]
    if (known !== undefined) return known
    const { own, preferredAffinity, inverse } = this.#rulesOf(shape)
    const groups = own.map((rule): OwnRule => {
      const group = this.#group(rule)
      const selfSelects = group.selects(shape.selectable)
      // A pod with several terms is not bound to the domains of one term.
      if (selfSelects && shape.required().length < 2) {
        if (rule.kind === 'affinity') group.addFollower(this.#reachableBy(shape, rule.key))
        else if (rule.kind === 'spread') this.#pin(group, shape)
      }
      return { group, selfSelects, isPreferredAffinity: preferredAffinity.has(rule) }
    })
    const repelling = this.#inverseIndex.selecting(shape.selectable)
    const found: GroupsOfShape = {
      ownDomains: groups.filter(({ group }) => !group.isHost),
      ownHosts: groups.filter(({ group }) => group.isHost),
      hostAffinity: groups.find(({ group }) => group.isHost && group.rule.kind === 'affinity'),
      repelledDomains: repelling.filter((group) => !group.isHost),
      repelledHosts: repelling.filter((group) => group.isHost),
      inverse: inverse.map((rule) => this.#inverseGroup(rule)),
      counting: [],
      countingVersion: -1,
    }
    this.#ofShape[shape.index] = found
    return found
  }

  /** Groups that count pods of this shape. */
  counting(shape: PodShape): readonly TopologyGroup[] {
    const groups = this.of(shape)
    if (groups.countingVersion !== this.#index.size) {
      groups.counting = this.#index.selecting(shape.selectable)
      groups.countingVersion = this.#index.size
    }
    return groups.counting
  }

  #rulesOf(shape: PodShape): ReturnType<typeof topologyRules> {
    const { selectable } = shape
    const known = this.#rulesByPart.get(selectable) ?? new Map<object, GroupRule>()
    this.#rulesByPart.set(selectable, known)
    return topologyRules(shape.spec, shape.whole, selectable, this.#problem.namespaces, (part, make) => {
      this.#context.pace.step()
      let rule = known.get(part)
      if (rule === undefined) {
        rule = make()
        known.set(part, rule)
      }
      return rule
    })
  }

  /** Notes for a spread constraint that new nodes for the pod can be in one of its domains only. */
  #pin(group: TopologyGroup, shape: PodShape): void {
    const wanted = this.#context.states.get(shape.strict.state)
    if (group.isHost || wanted.size === 0) return
    const filter = { alternatives: [wanted], tolerations: undefined }
    const [domain, ...others] = this.#context.universe.domains(group.rule.key, filter)
    if (domain !== undefined && others.length === 0) group.addPinned(group.domains.idOf(domain))
  }

  /** Values of a label that the pod and its volumes allow; undefined for all. */
  #reachableBy(shape: PodShape, key: string): ValueSet | undefined {
    const { states } = this.#context
    const own = states.get(shape.strict.state).get(key)
    const ofVolumes = shape.volumes.map(({ state }) => states.get(state).get(key))
    const listed = ofVolumes.filter((set) => set !== undefined && !set.complement)
    if (listed.length === 0 || listed.length < ofVolumes.length) return own
    const reachable = oneOf(key, ...listed.flatMap((set) => [...(set?.values ?? [])]))
    return own === undefined ? reachable : intersection(own, reachable)
  }

  #group(rule: GroupRule): TopologyGroup {
    let group = this.#byRule.get(rule)
    if (group === undefined) {
      group = this.#groupLike(rule)
      this.#byRule.set(rule, group)
    }
    return group
  }

  #groupLike(rule: GroupRule): TopologyGroup {
    this.#context.pace.step()
    const identity = this.#identities.of(rule)
    const known = this.#byIdentity.get(identity)
    if (known !== undefined) return known
    const group = this.#newGroup(rule)
    this.#byIdentity.set(identity, group)
    this.#index.add(group)
    this.#counts.fill(group)
    return group
  }

  #inverseGroup(rule: GroupRule): TopologyGroup {
    let group = this.#inverseByRule.get(rule)
    if (group === undefined) {
      group = this.#inverseLike(rule)
      this.#inverseByRule.set(rule, group)
    }
    return group
  }

  #inverseLike(rule: GroupRule): TopologyGroup {
    this.#context.pace.step()
    const open: GroupRule = { ...rule, filter: { alternatives: [], tolerations: undefined } }
    const identity = this.#identities.of(open)
    const known = this.#inverseByIdentity.get(identity)
    if (known !== undefined) return known
    const group = this.#newGroup(open)
    this.#inverseByIdentity.set(identity, group)
    this.#inverseIndex.add(group)
    return group
  }

  /** A group with all domains of nodes that exist, could be launched, or are assumed to be launched. */
  #newGroup(rule: GroupRule): TopologyGroup {
    const group = new TopologyGroup(rule, this.#nodes.namesOf(rule.key))
    this.#context.expected.follow(group)
    // Rules about hosts allow any host, so hosts need not be known beforehand.
    if (group.isHost) return group
    this.#domainKeys.add(rule.key)
    for (const domain of this.#context.universe.domains(rule.key, rule.filter))
      group.addDomain(group.domains.idOf(domain))
    for (const node of this.#problem.topologyNodes.values()) {
      const domain = this.#nodes.of(group, node)
      if (domain !== undefined) group.addDomain(domain)
    }
    if (rule.kind === 'spread') for (const id of this.#nodes.launched(group)) group.addDomain(id)
    return group
  }

  /** Bound pods repel the pods that their anti-affinity selects, even while they are terminating. */
  #addBoundAntiAffinity(): void {
    for (const [index, shape] of this.#problem.boundShapes.entries()) {
      if (shape.spec === undefined || !this.#counts.isBoundToNode(index)) continue
      const { inverse } = topologyRules(shape.spec, shape.spec, shape, this.#problem.namespaces, (_, make) =>
        make(),
      )
      for (const rule of inverse) this.#counts.countRepellingBound(index, this.#inverseGroup(rule))
    }
  }
}

/** Labels of every namespace, for namespace selectors. */
type Namespaces = ReadonlyMap<string, Readonly<Record<string, string>>>

interface TopologyRules {
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
type Once = (part: object, make: () => GroupRule) => GroupRule

const noRules: TopologyRules = { own: [], preferredAffinity: new Set(), inverse: [] }

/**
 * The topology rules of a pod (scheduling.md 9.1).
 * @param spec the spec after relaxation.
 * @param whole the spec before relaxation: kube-scheduler counts nodes by all node affinity terms and constraints, so a rule
 *   stays the same when others are relaxed.
 */
function topologyRules(
  spec: PodSpec,
  whole: PodSpec,
  pod: SelectablePod,
  namespaces: Namespaces,
  once: Once,
): TopologyRules {
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
