/** All topology rules of one simulation, and what they say about a placement (scheduling.md 9). */
import { labels, type Taint, ownValue } from '@tenon/api'
import { allowsAbsence, intersection, oneOf, type ValueSet } from '../../requirements/requirement.ts'
import { labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { TopologyNode } from '../../input/input.ts'
import type { BoundCount, Problem, SelectablePod } from '../problem/problem.ts'
import type { Pace } from '../pace.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import { DomainNames } from './domain-names.ts'
import { remembered } from '../remembered.ts'
import type { ExpectedPods } from './expected-pods.ts'
import type { DomainUniverse } from './domains.ts'
import { DomainSight } from './empty-domains.ts'
import { GroupIndex, knownValues, PodIndex } from './group-index.ts'
import { podRules } from './rules.ts'
import { type GroupRule, type Proposal, RuleIdentities, TopologyGroup } from './group.ts'

/** Where a pod was placed. Its state may narrow further until the end. */
export interface Place {
  readonly state: StateId
  readonly host: number
  readonly taints: readonly Taint[]
  /** Whether it is a node, which gains no further label. */
  readonly isNode: boolean
}

/** A node that is on its way, or that a plan launches. */
export type Launch = Pick<Place, 'state' | 'taints'>

interface TopologyContext {
  readonly states: RequirementStates
  readonly universe: DomainUniverse
  readonly expected: ExpectedPods
  readonly pace: Pace
}

interface OwnRule {
  readonly group: TopologyGroup
  /** Whether the pod counts for its own rule. */
  readonly selfSelects: boolean
  readonly isPreferredAffinity: boolean
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

/** What the rules about domains add to a candidate: one entry per key. */
export type Narrowing = readonly { readonly key: string; readonly domains: readonly string[] }[]

/** One way to satisfy the rules about domains. */
export interface Choice {
  readonly narrowing: Narrowing
  /** How good the domains are that were chosen, by rule: the lowest first, the first rule first. */
  readonly ranks: readonly number[]
}

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

type TopologyChange =
  | {
      readonly kind: 'counted'
      readonly group: TopologyGroup
      readonly id: number
      readonly pods: number
      readonly wasKnown: boolean
    }
  | {
      readonly kind: 'unlocated'
      readonly group: TopologyGroup
      readonly host: number
      readonly pods: number
    }
  | { readonly kind: 'excluded'; readonly node: TopologyNode }

const unrestricted: readonly Choice[] = [{ narrowing: [], ranks: [] }]
/** Choices looked at for one pod on one candidate; rules over several keys multiply. */
const mostChoices = 1024

export class PodTopology {
  readonly #problem: Problem
  readonly #pace: Pace
  readonly #states: RequirementStates
  readonly #universe: DomainUniverse
  readonly #expected: ExpectedPods
  readonly #names = new Map<string, DomainNames>()
  readonly #identities = new RuleIdentities()
  readonly #domainKeys = new Set<string>()
  readonly #groups = new Map<string, TopologyGroup>()
  readonly #inverseGroups = new Map<string, TopologyGroup>()
  /** Rules by the part of the pod that they are, of pods that look the same to others. */
  readonly #rulesByPart = new WeakMap<SelectablePod, Map<object, GroupRule>>()
  readonly #groupOf = new WeakMap<GroupRule, TopologyGroup>()
  readonly #inverseOf = new WeakMap<GroupRule, TopologyGroup>()
  readonly #groupIndex: GroupIndex
  readonly #inverseIndex: GroupIndex
  readonly #boundIndex: PodIndex
  readonly #rules: (ShapeRules | undefined)[] = []
  readonly #placed: { readonly shape: PodShape; readonly place: Place }[] = []
  readonly #nodeLabels = new Map<TopologyNode, Requirements>()
  readonly #countsOfShape: readonly (readonly BoundCount[])[]
  readonly #admitted = new Map<TopologyGroup, Map<StateId, boolean>>()
  /** What was counted since the first mark. */
  #log: TopologyChange[] | undefined
  /** The domains in which a spread counts nodes that are taken to be launched. */
  readonly #launched: (group: TopologyGroup) => ReadonlySet<number>
  readonly #sight: DomainSight

  /** @param launches nodes that are taken to be launched, whatever is decided: spreads count their domains. */
  constructor(
    problem: Problem,
    { states, universe, expected, pace }: TopologyContext,
    launches: readonly Launch[],
  ) {
    this.#problem = problem
    this.#pace = pace
    this.#expected = expected
    this.#states = states
    this.#universe = universe
    this.#launched = this.#domainsOf(launches)
    this.#sight = new DomainSight(
      universe,
      problem.topologyNodes,
      (group, node) => this.#domainIdAt(group, node),
      (group, domain) => this.#launched(group).has(domain),
    )
    const known = knownValues([...problem.shapes, ...problem.boundShapes])
    this.#groupIndex = new GroupIndex(known)
    this.#inverseIndex = new GroupIndex(known)
    this.#boundIndex = new PodIndex(problem.boundShapes, known)
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

  /** What DaemonSets bring to a claim's host. */
  expectOnClaim(host: number, template: number): void {
    this.#expected.onClaim(host, template)
  }

  /** What DaemonSets will bring to a node that is starting, by their indexes. */
  expectOnNode(host: number, daemons: readonly number[]): void {
    this.#expected.onNode(host, daemons)
  }

  /** Labels over which there are rules about domains. */
  get domainKeys(): ReadonlySet<string> {
    return this.#domainKeys
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
    if (rule === undefined || this.#expected.mayMeet(rule.group)) return undefined
    return rule.selfSelects && rule.group.mayBootstrap ? undefined : rule.group.populated
  }

  /** Whether the rules about single nodes allow this host. */
  allowsHost(shape: PodShape, host: number): boolean {
    const { ownDomains, ownHosts, repelledDomains, repelledHosts } = this.#rulesOf(shape)
    for (const group of repelledHosts) if (group.countIn(host) > 0) return false
    for (const group of repelledDomains) if (group.isUnlocatedOn(host)) return false
    for (const { group } of ownDomains) if (group.isUnlocatedOn(host)) return false
    for (const { group, selfSelects } of ownHosts)
      if (!group.allowsHost(host, shape.strict.host, selfSelects, this.#expected.on(host, group)))
        return false
    return true
  }

  /** The rule about single nodes that refuses this host. */
  hostRefusal(shape: PodShape, host: number): TopologyGroup | undefined {
    const { ownHosts, repelledHosts } = this.#rulesOf(shape)
    return (
      repelledHosts.find((group) => group.countIn(host) > 0) ??
      ownHosts.find(
        ({ group, selfSelects }) =>
          !group.allowsHost(host, shape.strict.host, selfSelects, this.#expected.on(host, group)),
      )?.group
    )
  }

  /**
   * Ways to satisfy the rules about domains on a claim, in order of the domains' names.
   * @param state the claim's requirements, the pod's included.
   * @param template index of the claim's template.
   */
  choices(shape: PodShape, state: StateId, template: number): readonly Choice[] | Unsatisfiable {
    const { ownDomains, repelledDomains } = this.#rulesOf(shape)
    if (ownDomains.length === 0 && repelledDomains.length === 0) return unrestricted
    const candidate = this.#states.get(state)
    const strict = this.#states.get(shape.strict.state)
    const byKey = new Map<string, KeyChoice>()
    const restrict = (group: TopologyGroup, proposal: Proposal): boolean => {
      const before = byKey.get(group.rule.key)
      const own = keyChoice(group, proposal)
      const after = before === undefined ? own : bothOf(before, own)
      byKey.set(group.rule.key, after)
      return after.domains.length > 0
    }
    for (const group of repelledDomains) {
      if (this.#isOutOfReach(group, shape, candidate)) continue
      const { key } = group.rule
      if (
        !restrict(
          group,
          group.propose(strict.get(key), candidate.get(key), false, this.#sight.by(group, shape.amounts)),
        )
      )
        return { kind: 'unsatisfiable', group }
    }
    for (const { group, selfSelects } of ownDomains) {
      const { key, kind } = group.rule
      if (kind !== 'spread') {
        const isOutOfReach = this.#isOutOfReach(group, shape, candidate)
        if (kind === 'antiAffinity' && isOutOfReach) continue
        // A node without the label is in no domain, whatever pods it runs.
        const isExpected = !isOutOfReach && this.#expected.ofTemplate(template, group)
        if (isExpected && kind === 'affinity') continue
        if (isExpected) return { kind: 'unsatisfiable', group }
      }
      if (
        !restrict(
          group,
          group.propose(
            strict.get(key),
            candidate.get(key),
            selfSelects,
            this.#sight.by(group, shape.amounts),
          ),
        )
      )
        return { kind: 'unsatisfiable', group }
    }
    return combinations([...byKey.values()])
  }

  /**
   * Whether the rules about domains allow a pod on a node.
   * @param labelsOf the node's requirements: one value for each label that some rule looks at.
   */
  allowsNode(shape: PodShape, labelsOf: Requirements, host: number): boolean {
    const { ownDomains, repelledDomains } = this.#rulesOf(shape)
    const strict = this.#states.get(shape.strict.state)
    const allows = (group: TopologyGroup, selfSelects: boolean, isPreferredAffinity = false): boolean => {
      const { key, kind } = group.rule
      const [domain] = labelsOf.get(key)?.values ?? []
      // A node without the label is in no domain: nobody is kept away from there, and no rule is met. The first of its
      // kind gains nothing from being in one.
      if (domain === undefined)
        return kind === 'antiAffinity' || (isPreferredAffinity && selfSelects && group.mayBootstrap)
      if (kind !== 'spread' && this.#expected.on(host, group)) return kind === 'affinity'
      return group.allowsDomain(strict.get(key), domain, selfSelects, this.#sight.by(group, shape.amounts))
    }
    return (
      repelledDomains.every((group) => allows(group, false)) &&
      ownDomains.every((each) => allows(each.group, each.selfSelects, each.isPreferredAffinity))
    )
  }

  /** Zones in which all rules about zones would have the shape now; undefined when it has none. */
  validZones(shape: PodShape): readonly string[] | undefined {
    const { ownDomains, repelledDomains } = this.#rulesOf(shape)
    const strict = this.#states.get(shape.strict.state).get(labels.zone)
    const rules = [...repelledDomains.map((group) => ({ group, selfSelects: false })), ...ownDomains]
    const valid = rules
      .filter(({ group }) => group.rule.key === labels.zone)
      .map(({ group, selfSelects }) =>
        group
          .propose(strict, undefined, selfSelects, this.#sight.by(group, shape.amounts))
          .domains.map((id) => group.domains.name(id)),
      )
    return valid.length === 0
      ? undefined
      : valid.reduce((zones, others) => zones.filter((zone) => others.includes(zone)))
  }

  /**
   * Whether kube-scheduler counts the same domains for spreads once these nodes are there as were counted here. A domain
   * is in question where no node is, and where none with room for the pod could be launched.
   * @param shapes those of all pods.
   */
  foresaw(launches: readonly Launch[], shapes: Iterable<PodShape>): boolean {
    const opened = this.#domainsOf(launches)
    const hasLess = (shape: PodShape, than: typeof opened, domains: typeof opened) =>
      this.#rulesOf(shape).ownDomains.some(
        ({ group }) =>
          group.rule.kind === 'spread' &&
          than(group)
            .values()
            .some(
              (id) =>
                !domains(group).has(id) &&
                group.countIn(id) === 0 &&
                !this.#sight.isFillable(group, id, shape.amounts),
            ),
      )
    const placed = new Set(this.#placed.map(({ shape }) => shape))
    return (
      !placed.values().some((shape) => hasLess(shape, opened, this.#launched)) &&
      !Iterator.from(shapes).some((shape) => hasLess(shape, this.#launched, opened))
    )
  }

  /** The domains in which a spread counts such nodes, as far as it is known where they will be. */
  #domainsOf(launches: readonly Launch[]): (group: TopologyGroup) => ReadonlySet<number> {
    return remembered((group) => {
      const domains = new Set<number>()
      for (const { state, taints } of launches) {
        const node = this.#states.get(state)
        const set = node.get(group.rule.key)
        const [value, ...others] = set === undefined || set.complement ? [] : set.values
        if (value === undefined || others.length > 0 || !group.admits(node, taints)) continue
        domains.add(group.domains.idOf(value))
      }
      return domains
    })
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
    while (log.length > changes) this.#undo(log.pop() as TopologyChange)
    this.#placed.length = placed
  }

  /** Omits domains that no other node has; call {@link mark} before. */
  exclude(node: TopologyNode): void {
    this.#sight.exclude(node)
    this.#log?.push({ kind: 'excluded', node })
  }

  #undo(change: TopologyChange): void {
    switch (change.kind) {
      case 'unlocated':
        change.group.recordUnlocated(change.host, -change.pods)
        return
      case 'counted':
        change.group.record(change.id, -change.pods)
        if (!change.wasKnown) change.group.forgetDomain(change.id)
        return
      case 'excluded':
        this.#sight.include(change.node)
    }
  }

  #domainIdAt(group: TopologyGroup, node: TopologyNode): number | undefined {
    const domain = this.#domainAt(group, node)
    return domain === undefined ? undefined : group.domains.idOf(domain)
  }

  #count(shape: PodShape, place: Place, pods: 1 | -1): void {
    const rules = this.#rulesOf(shape)
    for (const group of this.#counting(shape, rules)) this.#countIn(group, place, pods)
    for (const group of rules.inverse) this.#recordRepelling(group, place, pods)
  }

  #recordIn(group: TopologyGroup, id: number, pods: number): void {
    this.#log?.push({ kind: 'counted', group, id, pods, wasKnown: group.knows(id) })
    group.record(id, pods)
  }

  /** The domain that a node which may take pods makes known to a group. */
  #domainAt(group: TopologyGroup, node: TopologyNode): string | undefined {
    const domain = node.isCandidate ? ownValue(node.labels, group.rule.key) : undefined
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
    if (group.rule.kind === 'antiAffinity') {
      this.#recordRepelling(group, place, pods)
      return
    }
    const ids = this.#possible(group, place)
    if (ids.length === 1) this.#recordIn(group, ids[0] as number, pods)
  }

  /** Counts pods that keep others away: wherever they may be. */
  #recordRepelling(group: TopologyGroup, place: Place, pods: 1 | -1): void {
    const ids = this.#possible(group, place)
    for (const id of ids) this.#recordIn(group, id, pods)
    if (ids.length > 0 || place.isNode) return
    this.#log?.push({ kind: 'unlocated', group, host: place.host, pods })
    group.recordUnlocated(place.host, pods)
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
    const { selectable } = shape
    const known = this.#rulesByPart.get(selectable) ?? new Map<object, GroupRule>()
    this.#rulesByPart.set(selectable, known)
    return podRules(shape.spec, shape.whole, selectable, this.#problem.namespaces, (part, make) => {
      this.#pace.step()
      let rule = known.get(part)
      if (rule === undefined) {
        rule = make()
        known.set(part, rule)
      }
      return rule
    })
  }

  #rulesOf(shape: PodShape): ShapeRules {
    const known = this.#rules[shape.index]
    if (known !== undefined) return known
    const { own, preferredAffinity, inverse } = this.#podRules(shape)
    const groups = own.map((rule): OwnRule => {
      const group = this.#group(rule)
      const selfSelects = group.selects(shape.selectable)
      // A pod with several terms is not bound to what one of them allows.
      if (selfSelects && shape.required().length < 2) {
        if (rule.kind === 'affinity') group.addFollower(this.#reachableBy(shape, rule.key))
        else if (rule.kind === 'spread') this.#pin(group, shape)
      }
      return { group, selfSelects, isPreferredAffinity: preferredAffinity.has(rule) }
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

  /** Tells a spread when new nodes for the pod can be in one of its domains only, although the spread counts others. */
  #pin(group: TopologyGroup, shape: PodShape): void {
    const wanted = this.#states.get(shape.strict.state)
    if (group.isHost || wanted.size === 0) return
    const filter = { alternatives: [wanted], tolerations: undefined }
    const [domain, ...others] = this.#universe.domains(group.rule.key, filter)
    if (domain !== undefined && others.length === 0) group.addPinned(group.domains.idOf(domain))
  }

  /** Values of a label that the pod and its volumes allow; undefined for all. */
  #reachableBy(shape: PodShape, key: string): ValueSet | undefined {
    const own = this.#states.get(shape.strict.state).get(key)
    const ofVolumes = shape.volumes.map(({ state }) => this.#states.get(state).get(key))
    const listed = ofVolumes.filter((set) => set !== undefined && !set.complement)
    if (listed.length === 0 || listed.length < ofVolumes.length) return own
    const reachable = oneOf(key, ...listed.flatMap((set) => [...(set?.values ?? [])]))
    return own === undefined ? reachable : intersection(own, reachable)
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
    let group = this.#groupOf.get(rule)
    if (group === undefined) {
      group = this.#groupLike(rule)
      this.#groupOf.set(rule, group)
    }
    return group
  }

  #groupLike(rule: GroupRule): TopologyGroup {
    this.#pace.step()
    const identity = this.#identities.of(rule)
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
    let group = this.#inverseOf.get(rule)
    if (group === undefined) {
      group = this.#inverseLike(rule)
      this.#inverseOf.set(rule, group)
    }
    return group
  }

  #inverseLike(rule: GroupRule): TopologyGroup {
    this.#pace.step()
    const open: GroupRule = { ...rule, filter: { alternatives: [], tolerations: undefined } }
    const identity = this.#identities.of(open)
    const known = this.#inverseGroups.get(identity)
    if (known !== undefined) return known
    const group = this.#withDomains(open)
    this.#inverseGroups.set(identity, group)
    this.#inverseIndex.add(group)
    return group
  }

  #withDomains(rule: GroupRule): TopologyGroup {
    const group = new TopologyGroup(rule, this.#namesOf(rule.key))
    this.#expected.follow(group)
    // Any host will do for a rule about hosts, so hosts need not be known beforehand.
    if (group.isHost) return group
    this.#domainKeys.add(rule.key)
    for (const domain of this.#universe.domains(rule.key, rule.filter))
      group.addDomain(group.domains.idOf(domain))
    for (const node of this.#problem.topologyNodes.values()) {
      const domain = this.#domainAt(group, node)
      if (domain !== undefined) group.addDomain(group.domains.idOf(domain))
    }
    if (rule.kind === 'spread') for (const id of this.#launched(group)) group.addDomain(id)
    return group
  }

  #countBoundPods(group: TopologyGroup): void {
    for (const index of this.#boundIndex.candidates(group)) {
      const shape = this.#problem.boundShapes[index]
      if (shape === undefined || !group.selects(shape)) continue
      for (const { node: name, counted, present } of this.#countsOfShape[index] ?? []) {
        const node = this.#problem.topologyNodes.get(name)
        if (node === undefined) continue
        const domain = group.isHost ? node.hostname : ownValue(node.labels, group.rule.key)
        if (domain === undefined) continue
        if (group.rule.kind === 'spread' && !group.admits(this.#labelsOf(node), node.taints)) continue
        // Pods that are going still attract and repel others; they are spread no more.
        group.record(group.domains.idOf(domain), group.rule.kind === 'spread' ? counted : present)
      }
    }
  }

  /** Bound pods keep away whom they selected, also while they are terminating. */
  #observeBoundAntiAffinity(): void {
    for (const [index, shape] of this.#problem.boundShapes.entries()) {
      if (shape.spec === undefined) continue
      const { inverse } = podRules(shape.spec, shape.spec, shape, this.#problem.namespaces, (_, make) =>
        make(),
      )
      for (const { node: name, present } of this.#countsOfShape[index] ?? []) {
        const node = this.#problem.topologyNodes.get(name)
        if (node === undefined) continue
        for (const rule of inverse) {
          const group = this.#inverseGroup(rule)
          const domain = group.isHost ? node.hostname : ownValue(node.labels, group.rule.key)
          if (domain === undefined) continue
          group.record(group.domains.idOf(domain), present)
        }
      }
    }
  }

  /** Whether a claim can never carry the label a rule is about, and so is no place that the rule is about. */
  #isOutOfReach(group: TopologyGroup, { amounts }: PodShape, claim: Requirements): boolean {
    const { key } = group.rule
    const set = claim.get(key)
    if (this.#problem.policy.wellKnownLabels.has(key))
      return set === undefined && !group.hasDomains(this.#sight.by(group, amounts))
    // A label that may be absent is not put on the node.
    return set === undefined || allowsAbsence(set)
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

/** Domains of one key that are left, and how good they are. */
interface KeyChoice {
  readonly key: string
  readonly domains: readonly string[]
  /** By rule that must settle on one domain: how good each domain is. */
  readonly ranks: readonly (readonly number[])[]
}

/** What both rules leave. */
function bothOf(a: KeyChoice, b: KeyChoice): KeyChoice {
  const kept = (of: KeyChoice, other: KeyChoice) =>
    of.domains.flatMap((domain, index) => (other.domains.includes(domain) ? [index] : []))
  const [ofA, ofB] = [kept(a, b), kept(b, a)]
  const ranksAt = (ranks: KeyChoice['ranks'], indexes: readonly number[]) =>
    ranks.map((each) => indexes.map((index) => each[index] as number))
  return {
    key: a.key,
    domains: ofA.map((index) => a.domains[index] as string),
    ranks: [...ranksAt(a.ranks, ofA), ...ranksAt(b.ranks, ofB)],
  }
}

/** Each way to settle on one domain of every key where that has to be; the best ones if there are too many. */
function combinations(keys: readonly KeyChoice[]): readonly Choice[] {
  let choices = unrestricted
  for (const { key, domains, ranks } of keys) {
    if (ranks.length === 0) {
      choices = choices.map((choice) => ({ ...choice, narrowing: [...choice.narrowing, { key, domains }] }))
      continue
    }
    const ranked = domains.map((domain, index) => ({
      domain,
      ranks: ranks.map((each) => each[index] as number),
    }))
    if (ranked.length * choices.length > mostChoices) ranked.sort((a, b) => compareRanks(a.ranks, b.ranks))
    choices = choices
      .flatMap((choice) =>
        ranked.map((each) => ({
          narrowing: [...choice.narrowing, { key, domains: [each.domain] }],
          ranks: [...choice.ranks, ...each.ranks],
        })),
      )
      .slice(0, mostChoices)
  }
  return choices
}

/** The lower ranks come first, those of the first rule before those of the next. */
export function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, rank] of a.entries()) {
    const difference = rank - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function keyChoice({ rule, domains: names }: TopologyGroup, { domains, ranks }: Proposal): KeyChoice {
  return {
    key: rule.key,
    domains: domains.map((id) => names.name(id)),
    ranks: ranks === undefined ? [] : [ranks],
  }
}
