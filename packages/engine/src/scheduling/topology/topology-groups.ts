/** The topology groups of a problem, and which of them bear on the pods of each shape (scheduling.md 9). */
import { intersection, oneOf, type ValueSet } from '../../requirements/requirement.ts'
import type { RequirementStates } from '../../requirements/states.ts'
import type { Pace } from '../pace.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import type { Problem, SelectablePod } from '../problem/problem.ts'
import type { DomainUniverse } from './domains.ts'
import type { ExpectedPods } from './expected-pods.ts'
import { type GroupRule, RuleIdentities, TopologyGroup } from './group.ts'
import { GroupIndex, type KnownValues } from './group-index.ts'
import type { NodeDomains } from './node-domains.ts'
import type { PodCounts } from './pod-counts.ts'
import { podRules } from './rules.ts'

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

  #rulesOf(shape: PodShape): ReturnType<typeof podRules> {
    const { selectable } = shape
    const known = this.#rulesByPart.get(selectable) ?? new Map<object, GroupRule>()
    this.#rulesByPart.set(selectable, known)
    return podRules(shape.spec, shape.whole, selectable, this.#problem.namespaces, (part, make) => {
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
      const { inverse } = podRules(shape.spec, shape.spec, shape, this.#problem.namespaces, (_, make) =>
        make(),
      )
      for (const rule of inverse) this.#counts.countRepellingBound(index, this.#inverseGroup(rule))
    }
  }
}
