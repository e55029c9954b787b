/** All topology rules of one simulation, and what they say about a placement (scheduling.md 9). */
import { labels, matchesSelector, normalizedLabel, type Taint } from '@tenon/api'
import type { ValueSet } from '../../requirements/requirement.ts'
import { labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import { oneOf } from '../../requirements/requirement.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { TopologyNode } from '../../snapshot/input.ts'
import type { BoundCount, Problem } from '../../snapshot/problem.ts'
import type { PodShape } from '../pod-shape.ts'
import { DomainNames } from './domain-names.ts'
import type { DomainUniverse } from './domains.ts'
import { GroupIndex, PodIndex } from './group-index.ts'
import { podRules, ruleIdentity } from './rules.ts'
import { type GroupRule, TopologyGroup } from './group.ts'

/** Where a pod was placed. Its state may narrow further until the end. */
export interface Place {
  readonly state: StateId
  readonly host: number
  readonly taints: readonly Taint[]
}

interface OwnRule {
  readonly group: TopologyGroup
  /** Whether the pod counts for its own rule. */
  readonly selfSelects: boolean
}

/** The rules that bear on pods of one shape. */
interface ShapeRules {
  readonly ownDomains: readonly OwnRule[]
  readonly ownHosts: readonly OwnRule[]
  /** Rules of other pods that keep this shape away from them. */
  readonly repelledDomains: readonly TopologyGroup[]
  readonly repelledHosts: readonly TopologyGroup[]
  /** The shape's own required anti-affinity, seen from the other side. */
  readonly inverse: readonly TopologyGroup[]
  /** Affinity to hosts that hold certain pods: only those need to be asked. */
  readonly hostAffinity: OwnRule | undefined
  /** Groups that count pods of this shape; renewed when groups are added. */
  counting: readonly TopologyGroup[]
  countingVersion: number
}

/** What the rules about domains add to a candidate: one entry per rule. */
export type Narrowing = readonly { readonly key: string; readonly domains: readonly string[] }[]

/** No rule allows the placement. */
export interface Unsatisfiable {
  readonly kind: 'unsatisfiable'
  readonly group: TopologyGroup
}

/** A point to which changes can be taken back. */
export interface TopologyMark {
  readonly changes: number
  readonly placed: number
}

/** A domain of a group that some nodes have and no pool. */
interface DomainUse {
  readonly group: TopologyGroup
  readonly id: number
  /** How many of them are there. */
  nodes: number
}

type TopologyChange =
  | {
      readonly kind: 'counted'
      readonly group: TopologyGroup
      readonly id: number
      readonly pods: number
      readonly wasKnown: boolean
    }
  | { readonly kind: 'excluded'; readonly use: DomainUse; readonly isGone: boolean }

const unrestricted: Narrowing = []

export class PodTopology {
  readonly #problem: Problem
  readonly #states: RequirementStates
  readonly #universe: DomainUniverse
  readonly #names = new Map<string, DomainNames>()
  readonly #groups = new Map<string, TopologyGroup>()
  readonly #inverseGroups = new Map<string, TopologyGroup>()
  readonly #groupIndex = new GroupIndex()
  readonly #inverseIndex = new GroupIndex()
  readonly #boundIndex: PodIndex
  readonly #rules: (ShapeRules | undefined)[] = []
  readonly #placed: { readonly shape: PodShape; readonly place: Place }[] = []
  readonly #nodeLabels = new Map<TopologyNode, Requirements>()
  readonly #countsOfShape: readonly (readonly BoundCount[])[]
  readonly #admitted = new Map<TopologyGroup, Map<StateId, boolean>>()
  /** What was counted since the first mark. */
  #log: TopologyChange[] | undefined
  #domainUses: ReadonlyMap<TopologyNode, readonly DomainUse[]> | undefined

  constructor(problem: Problem, states: RequirementStates, universe: DomainUniverse) {
    this.#problem = problem
    this.#states = states
    this.#universe = universe
    this.#boundIndex = new PodIndex(problem.boundShapes)
    const counts: BoundCount[][] = problem.boundShapes.map(() => [])
    for (const count of problem.boundCounts) counts[count.shape]?.push(count)
    this.#countsOfShape = counts
    this.#observeBoundAntiAffinity()
  }

  /** Makes the rules of all shapes known: anti-affinity of any of them holds from the start. */
  observe(shapes: readonly PodShape[]): void {
    for (const shape of shapes) for (const rule of this.#podRules(shape).inverse) this.#inverseGroup(rule)
    for (const shape of shapes) this.#rulesOf(shape)
  }

  /** Number of a host name, for {@link allowsHost} and {@link record}. */
  hostOf(name: string): number {
    return this.#namesOf(labels.hostname).idOf(name)
  }

  /** Whether rules about domains bear on the shape. */
  concernsDomains(shape: PodShape): boolean {
    const { ownDomains, repelledDomains } = this.#rulesOf(shape)
    return ownDomains.length > 0 || repelledDomains.length > 0
  }

  /** Whether rules about single nodes bear on the shape. */
  concernsHosts(shape: PodShape): boolean {
    const { ownHosts, repelledHosts } = this.#rulesOf(shape)
    return ownHosts.length > 0 || repelledHosts.length > 0
  }

  /** Whether the shape follows no rule about other pods; others may still have rules about it. */
  isIndifferent(shape: PodShape): boolean {
    return (
      !this.concernsDomains(shape) && !this.concernsHosts(shape) && this.#rulesOf(shape).inverse.length === 0
    )
  }

  /** Whether a refusal of {@link allowsHost} may turn into consent as other pods are placed. */
  refusesHostsForNow(shape: PodShape): boolean {
    return this.#rulesOf(shape).hostAffinity !== undefined
  }

  /** Hosts to which an affinity binds the shape; undefined when any host may do. */
  boundHosts(shape: PodShape): Iterable<number> | undefined {
    const rule = this.#rulesOf(shape).hostAffinity
    if (rule === undefined) return undefined
    return rule.selfSelects && rule.group.mayBootstrap(shape.strict.host) ? undefined : rule.group.populated
  }

  /** Whether the rules about single nodes allow this host. */
  allowsHost(shape: PodShape, host: number): boolean {
    const { ownHosts, repelledHosts } = this.#rulesOf(shape)
    for (const group of repelledHosts) if (group.countIn(host) > 0) return false
    for (const { group, selfSelects } of ownHosts)
      if (!group.allowsHost(host, shape.strict.host, selfSelects)) return false
    return true
  }

  /** The rule about single nodes that refuses this host. */
  hostRefusal(shape: PodShape, host: number): TopologyGroup | undefined {
    const { ownHosts, repelledHosts } = this.#rulesOf(shape)
    return (
      repelledHosts.find((group) => group.countIn(host) > 0) ??
      ownHosts.find(({ group, selfSelects }) => !group.allowsHost(host, shape.strict.host, selfSelects))
        ?.group
    )
  }

  /**
   * What the rules about domains add to the requirements of a placement.
   * @param state the candidate's requirements, the pod's included.
   * @param isFixed whether the candidate is a node, which gains no further label.
   */
  narrow(shape: PodShape, state: StateId, isFixed: boolean): Narrowing | Unsatisfiable {
    const { ownDomains, repelledDomains } = this.#rulesOf(shape)
    if (ownDomains.length === 0 && repelledDomains.length === 0) return unrestricted
    const candidate = this.#states.get(state)
    const strict = this.#states.get(shape.strict.state)
    const added: { key: string; domains: readonly string[] }[] = []
    const propose = (group: TopologyGroup, selfSelects: boolean): boolean => {
      const { key } = group.rule
      const domains = group.propose(strict.get(key), candidate.get(key), selfSelects)
      if (domains.length > 0) added.push({ key, domains: domains.map((id) => group.domains.name(id)) })
      return domains.length > 0
    }
    for (const group of repelledDomains) {
      if (isOutOfReach(group, candidate, isFixed)) continue
      if (!propose(group, false)) return { kind: 'unsatisfiable', group }
    }
    for (const { group, selfSelects } of ownDomains)
      if (!propose(group, selfSelects)) return { kind: 'unsatisfiable', group }
    return added
  }

  /** Zones in which all rules about zones would have the shape now; undefined when it has none. */
  validZones(shape: PodShape): readonly string[] | undefined {
    const { ownDomains, repelledDomains } = this.#rulesOf(shape)
    const strict = this.#states.get(shape.strict.state).get(labels.zone)
    const rules = [...repelledDomains.map((group) => ({ group, selfSelects: false })), ...ownDomains]
    const valid = rules
      .filter(({ group }) => group.rule.key === labels.zone)
      .map(({ group, selfSelects }) =>
        group.validDomains(strict, selfSelects).map((id) => group.domains.name(id)),
      )
    return valid.length === 0
      ? undefined
      : valid.reduce((zones, others) => zones.filter((zone) => others.includes(zone)))
  }

  /** Counts a placed pod. */
  record(shape: PodShape, place: Place): void {
    this.#placed.push({ shape, place })
    this.#count(shape, place, 1)
  }

  /** Counts a pod no more that was recorded, or bound, at a place. All rules have to be known by now. */
  remove(shape: PodShape, place: Place): void {
    this.#count(shape, place, -1)
  }

  /** From now on what changes can be taken back, to where this was called. */
  mark(): TopologyMark {
    this.#log ??= []
    return { changes: this.#log.length, placed: this.#placed.length }
  }

  /** Takes back everything since the mark. */
  rollback({ changes, placed }: TopologyMark): void {
    const log = this.#log ?? []
    while (log.length > changes) undo(log.pop() as TopologyChange)
    this.#placed.length = placed
  }

  /** Leaves out domains that no other node has; call {@link mark} before. */
  exclude(node: TopologyNode): void {
    for (const use of this.#domainsOfNodes().get(node) ?? []) {
      use.nodes--
      const isGone = use.nodes === 0 && use.group.countIn(use.id) === 0
      this.#log?.push({ kind: 'excluded', use, isGone })
      if (isGone) use.group.forgetDomain(use.id)
    }
  }

  #count(shape: PodShape, place: Place, pods: 1 | -1): void {
    const rules = this.#rulesOf(shape)
    for (const group of this.#counting(shape, rules)) this.#countIn(group, place, pods)
    for (const group of rules.inverse)
      for (const id of this.#possible(group, place)) this.#recordIn(group, id, pods)
  }

  #recordIn(group: TopologyGroup, id: number, pods: number): void {
    this.#log?.push({ kind: 'counted', group, id, pods, wasKnown: group.knows(id) })
    group.record(id, pods)
  }

  /** By node the domains that are there because nodes have them, not because a pool could. */
  #domainsOfNodes(): ReadonlyMap<TopologyNode, readonly DomainUse[]> {
    if (this.#domainUses !== undefined) return this.#domainUses
    const byNode = new Map<TopologyNode, DomainUse[]>()
    for (const group of [...this.#groups.values(), ...this.#inverseGroups.values()]) {
      if (group.isHost) continue
      const { rule, domains } = group
      const ofPools = new Set(this.#universe.domains(rule.key, rule.filter.tolerations))
      const uses = new Map<string, DomainUse>()
      for (const node of this.#problem.topologyNodes.values()) {
        const domain = this.#domainAt(group, node)
        if (domain === undefined || ofPools.has(domain)) continue
        const use = uses.get(domain) ?? { group, id: domains.idOf(domain), nodes: 0 }
        use.nodes++
        uses.set(domain, use)
        const known = byNode.get(node)
        if (known === undefined) byNode.set(node, [use])
        else known.push(use)
      }
    }
    this.#domainUses = byNode
    return byNode
  }

  /** The domain that a node which may take pods makes known to a group. */
  #domainAt(group: TopologyGroup, node: TopologyNode): string | undefined {
    const domain = node.isCandidate ? node.labels[group.rule.key] : undefined
    if (domain === undefined) return undefined
    return group.rule.kind === 'spread' && !group.admits(this.#labelsOf(node), node.taints)
      ? undefined
      : domain
  }

  #counting(shape: PodShape, rules: ShapeRules): readonly TopologyGroup[] {
    if (rules.countingVersion !== this.#groupIndex.size) {
      rules.counting = this.#groupIndex.selecting(shape.selectable)
      rules.countingVersion = this.#groupIndex.size
    }
    return rules.counting
  }

  /** Counts a pod at a place: everywhere it may be for anti-affinity, else only where it surely is. */
  #countIn(group: TopologyGroup, place: Place, pods: 1 | -1): void {
    if (group.rule.kind === 'spread' && !this.#admits(group, place)) return
    const ids = this.#possible(group, place)
    if (group.rule.kind === 'antiAffinity') for (const id of ids) this.#recordIn(group, id, pods)
    else if (ids.length === 1) this.#recordIn(group, ids[0] as number, pods)
  }

  #possible(group: TopologyGroup, place: Place): readonly number[] {
    if (group.isHost) return [place.host]
    const set = this.#states.get(place.state).get(group.rule.key)
    return set === undefined || set.complement
      ? []
      : [...set.values].map((value) => group.domains.idOf(value))
  }

  #admits(group: TopologyGroup, place: Place): boolean {
    const { filter } = group.rule
    if (filter.alternatives.length === 0 && filter.tolerations === undefined) return true
    if (group.filtersHosts) {
      const host = oneOf(labels.hostname, this.#namesOf(labels.hostname).name(place.host))
      return group.admits(new Map([...this.#states.get(place.state), [labels.hostname, host]]), place.taints)
    }
    if (filter.tolerations !== undefined && place.taints.length > 0)
      return group.admits(this.#states.get(place.state), place.taints)
    let known = this.#admitted.get(group)
    if (known === undefined) {
      known = new Map()
      this.#admitted.set(group, known)
    }
    let verdict = known.get(place.state)
    if (verdict === undefined) {
      verdict = group.admits(this.#states.get(place.state), [])
      known.set(place.state, verdict)
    }
    return verdict
  }

  #podRules(shape: PodShape) {
    return podRules(shape.spec, shape.selectable, this.#problem.namespaces, matchesSelector)
  }

  #rulesOf(shape: PodShape): ShapeRules {
    const known = this.#rules[shape.index]
    if (known !== undefined) return known
    const { own, inverse } = this.#podRules(shape)
    const groups = own.map((rule): OwnRule => {
      const group = this.#group(rule)
      return { group, selfSelects: group.selects(shape.selectable) }
    })
    const repelling = this.#inverseIndex.selecting(shape.selectable)
    const rules: ShapeRules = {
      ownDomains: groups.filter(({ group }) => !group.isHost),
      ownHosts: groups.filter(({ group }) => group.isHost),
      hostAffinity: groups.find(({ group }) => group.isHost && group.rule.kind === 'affinity'),
      repelledDomains: repelling.filter((group) => !group.isHost),
      repelledHosts: repelling.filter((group) => group.isHost),
      inverse: inverse.map((rule) => this.#inverseGroup(rule)),
      counting: [],
      countingVersion: -1,
    }
    this.#rules[shape.index] = rules
    return rules
  }

  #namesOf(key: string): DomainNames {
    let names = this.#names.get(key)
    if (names === undefined) {
      names = new DomainNames()
      this.#names.set(key, names)
    }
    return names
  }

  #group(rule: GroupRule): TopologyGroup {
    const identity = ruleIdentity(rule)
    const known = this.#groups.get(identity)
    if (known !== undefined) return known
    const group = this.#withDomains(rule)
    this.#groups.set(identity, group)
    this.#groupIndex.add(group)
    this.#countBoundPods(group)
    // A rule that came in late must know what this simulation has placed already.
    for (const { shape, place } of this.#placed)
      if (group.selects(shape.selectable)) this.#countIn(group, place, 1)
    return group
  }

  #inverseGroup(rule: GroupRule): TopologyGroup {
    const open: GroupRule = { ...rule, filter: { alternatives: [], tolerations: undefined } }
    const identity = ruleIdentity(open)
    const known = this.#inverseGroups.get(identity)
    if (known !== undefined) return known
    const group = this.#withDomains(open)
    this.#inverseGroups.set(identity, group)
    this.#inverseIndex.add(group)
    return group
  }

  #withDomains(rule: GroupRule): TopologyGroup {
    const group = new TopologyGroup(rule, this.#namesOf(rule.key))
    // Any host will do for a rule about hosts, so hosts need not be known beforehand.
    if (group.isHost) return group
    for (const domain of this.#universe.domains(rule.key, rule.filter.tolerations))
      group.addDomain(group.domains.idOf(domain))
    for (const node of this.#problem.topologyNodes.values()) {
      const domain = this.#domainAt(group, node)
      if (domain !== undefined) group.addDomain(group.domains.idOf(domain))
    }
    return group
  }

  #countBoundPods(group: TopologyGroup): void {
    for (const index of this.#boundIndex.candidates(group)) {
      const shape = this.#problem.boundShapes[index]
      if (shape === undefined || !group.selects(shape)) continue
      for (const { node: name, counted } of this.#countsOfShape[index] ?? []) {
        const node = this.#problem.topologyNodes.get(name)
        if (node === undefined) continue
        const domain = group.isHost ? node.hostname : node.labels[group.rule.key]
        if (domain === undefined) continue
        if (group.rule.kind === 'spread' && !group.admits(this.#labelsOf(node), node.taints)) continue
        group.record(group.domains.idOf(domain), counted)
      }
    }
  }

  /** Bound pods keep away whom they selected, also while they are terminating. */
  #observeBoundAntiAffinity(): void {
    for (const [index, shape] of this.#problem.boundShapes.entries()) {
      if (shape.spec === undefined) continue
      const { inverse } = podRules(shape.spec, shape, this.#problem.namespaces, matchesSelector)
      for (const { node: name, present } of this.#countsOfShape[index] ?? []) {
        const node = this.#problem.topologyNodes.get(name)
        if (node === undefined) continue
        for (const rule of inverse) {
          const domain = node.labels[normalizedLabel(rule.key)]
          if (domain === undefined) continue
          const group = this.#inverseGroup(rule)
          group.record(group.domains.idOf(domain), present)
        }
      }
    }
  }

  #labelsOf(node: TopologyNode): Requirements {
    let requirements = this.#nodeLabels.get(node)
    if (requirements === undefined) {
      requirements = labelRequirements({ [labels.hostname]: node.hostname, ...node.labels })
      this.#nodeLabels.set(node, requirements)
    }
    return requirements
  }
}

function undo(change: TopologyChange): void {
  if (change.kind === 'counted') {
    change.group.record(change.id, -change.pods)
    if (!change.wasKnown) change.group.forgetDomain(change.id)
    return
  }
  change.use.nodes++
  if (change.isGone) change.use.group.addDomain(change.use.id)
}

/** A candidate that can never carry the key is no place the rule is about. */
function isOutOfReach(group: TopologyGroup, candidate: Requirements, isFixed: boolean): boolean {
  const set: ValueSet | undefined = candidate.get(group.rule.key)
  return set === undefined && (isFixed || !group.hasDomains)
}
