/** Topology spread constraints, pod affinity and anti-affinity: what they say about a placement (scheduling.md 9). */
import { labels } from '@tenon/api'
import type { TopologyNode } from '../../input/input.ts'
import { allowsAbsence } from '../../requirements/requirement.ts'
import type { Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import type { Problem } from '../problem/problem.ts'
import {
  combinations,
  commonDomains,
  type DomainChoice,
  keyDomains,
  type KeyDomains,
  unrestricted,
} from './domain-choices.ts'
import type { ExpectedPods } from './pod-counts.ts'
import type { EmptyDomains, TopologyGroup } from './group.ts'
import { knownValues } from './group-index.ts'
import { type DomainsOfGroup, type Launch, NodeDomains, type NodeView } from './node-domains.ts'
import { PodCounts, type TopologyMark } from './pod-counts.ts'
import { type TopologyContext, TopologyGroups } from './topology-groups.ts'
import type { Amounts } from '../pods/resource-space.ts'
import type { DomainUniverse } from './domains.ts'

/** No rule allows the placement. */
export interface Unsatisfiable {
  readonly kind: 'unsatisfiable'
  readonly group: TopologyGroup
}

export class PodTopology {
  readonly #problem: Problem
  readonly #states: RequirementStates
  readonly #expected: ExpectedPods
  readonly #nodes: NodeDomains
  readonly #empty: EmptyDomainIndex
  readonly #counts: PodCounts
  readonly #groups: TopologyGroups

  /** @param launches nodes that are assumed to be launched, whatever is decided: spread constraints count their domains. */
  constructor(problem: Problem, context: TopologyContext, launches: readonly Launch[]) {
    const { expected, states, universe } = context
    const known = knownValues([...problem.shapes, ...problem.boundShapes])
    this.#problem = problem
    this.#states = states
    this.#expected = expected
    this.#nodes = new NodeDomains(states, launches)
    this.#empty = new EmptyDomainIndex(universe, problem.topologyNodes, this.#nodes)
    this.#counts = new PodCounts(problem, states, this.#nodes, known)
    this.#groups = new TopologyGroups(problem, context, this.#nodes, this.#counts, known)
  }

  /** Adds the rules of these shapes, whose anti-affinity binds all others from then on. */
  observe(shapes: readonly PodShape[]): void {
    this.#groups.add(shapes)
  }

  /** Number of a host name, for {@link allowsHost} and {@link record}. */
  hostOf(name: string): number {
    return this.#nodes.namesOf(labels.hostname).idOf(name)
  }

  /** Expects the pods of the DaemonSets that run on nodes of a template. */
  expectOnClaim(host: number, template: number): void {
    this.#expected.onClaim(host, template)
  }

  /** Expects the pods of these DaemonSets, by index, on a node that is starting. */
  expectOnNode(host: number, daemons: readonly number[]): void {
    this.#expected.onNode(host, daemons)
  }

  /** Labels that some rule about domains names. */
  get domainKeys(): ReadonlySet<string> {
    return this.#groups.domainKeys
  }

  /** Whether rules about domains bind the shape. */
  concernsDomains(shape: PodShape): boolean {
    const { ownDomains, repelledDomains } = this.#groups.of(shape)
    return ownDomains.length > 0 || repelledDomains.length > 0
  }

  /** Whether rules about hosts bind the shape. */
  concernsHosts(shape: PodShape): boolean {
    const { ownHosts, repelledHosts } = this.#groups.of(shape)
    return ownHosts.length > 0 || repelledHosts.length > 0
  }

  /** Whether no rule about other pods binds the shape. Rules of others may still count its pods. */
  isIndifferent(shape: PodShape): boolean {
    return (
      !this.concernsDomains(shape) &&
      !this.concernsHosts(shape) &&
      this.#groups.of(shape).inverse.length === 0
    )
  }

  /** Whether a host that {@link allowsHost} excludes may be allowed once other pods are placed. */
  refusesHostsForNow(shape: PodShape): boolean {
    return this.#groups.of(shape).hostAffinity !== undefined
  }

  /** Hosts to which affinity binds the shape; undefined if it may use any host. */
  boundHosts(shape: PodShape): Iterable<number> | undefined {
    const rule = this.#groups.of(shape).hostAffinity
    if (rule === undefined || this.#expected.mayMeet(rule.group)) return undefined
    return rule.selfSelects && rule.group.mayBootstrap ? undefined : rule.group.populated
  }

  /** Whether the rules about hosts allow this host. */
  allowsHost(shape: PodShape, host: number): boolean {
    const { ownDomains, ownHosts, repelledDomains, repelledHosts } = this.#groups.of(shape)
    for (const group of repelledHosts) if (group.countIn(host) > 0) return false
    for (const group of repelledDomains) if (group.isUnlocatedOn(host)) return false
    for (const { group } of ownDomains) if (group.isUnlocatedOn(host)) return false
    for (const { group, selfSelects } of ownHosts)
      if (!group.allowsHost(host, shape.strict.host, selfSelects, this.#expected.on(host, group)))
        return false
    return true
  }

  /** The rule about hosts that excludes this host. */
  hostRefusal(shape: PodShape, host: number): TopologyGroup | undefined {
    const { ownHosts, repelledHosts } = this.#groups.of(shape)
    return (
      repelledHosts.find((group) => group.countIn(host) > 0) ??
      ownHosts.find(
        ({ group, selfSelects }) =>
          !group.allowsHost(host, shape.strict.host, selfSelects, this.#expected.on(host, group)),
      )?.group
    )
  }

  /**
   * The ways to satisfy the rules about domains on a claim, in order of the domains' names.
   * @param state the requirements of the claim with the pod.
   * @param template index of the claim's template.
   */
  choices(shape: PodShape, state: StateId, template: number): readonly DomainChoice[] | Unsatisfiable {
    const { ownDomains, repelledDomains } = this.#groups.of(shape)
    if (ownDomains.length === 0 && repelledDomains.length === 0) return unrestricted
    const candidate = this.#states.get(state)
    const strict = this.#states.get(shape.strict.state)
    const byKey = new Map<string, KeyDomains>()
    const leavesDomains = (group: TopologyGroup, selfSelects: boolean): boolean => {
      const { key } = group.rule
      const empty = this.#emptyFor(shape, group)
      const own = keyDomains(group, group.propose(strict.get(key), candidate.get(key), selfSelects, empty))
      const before = byKey.get(key)
      const after = before === undefined ? own : commonDomains(before, own)
      byKey.set(key, after)
      return after.domains.length > 0
    }
    for (const group of repelledDomains) {
      if (this.#isOutOfReach(group, shape, candidate)) continue
      if (!leavesDomains(group, false)) return { kind: 'unsatisfiable', group }
    }
    for (const { group, selfSelects } of ownDomains) {
      const { kind } = group.rule
      if (kind !== 'spread') {
        const isOutOfReach = this.#isOutOfReach(group, shape, candidate)
        if (kind === 'antiAffinity' && isOutOfReach) continue
        // A node without the label is in no domain, whatever pods it runs.
        const isExpected = !isOutOfReach && this.#expected.ofTemplate(template, group)
        if (isExpected && kind === 'affinity') continue
        if (isExpected) return { kind: 'unsatisfiable', group }
      }
      if (!leavesDomains(group, selfSelects)) return { kind: 'unsatisfiable', group }
    }
    return combinations(byKey.values())
  }

  /**
   * Whether the rules about domains allow a pod on a node.
   * @param labelsOf the node's labels that some rule names, as requirements.
   */
  allowsNode(shape: PodShape, labelsOf: Requirements, host: number): boolean {
    const { ownDomains, repelledDomains } = this.#groups.of(shape)
    const strict = this.#states.get(shape.strict.state)
    const allows = (group: TopologyGroup, selfSelects: boolean, isPreferredAffinity = false): boolean => {
      const { key, kind } = group.rule
      const [domain] = labelsOf.get(key)?.values ?? []
      // A node without the label is in no domain: no pod is repelled from it, and it meets no rule. A preferred affinity
      // that no pod meets yet gains nothing from a domain.
      if (domain === undefined)
        return kind === 'antiAffinity' || (isPreferredAffinity && selfSelects && group.mayBootstrap)
      if (kind !== 'spread' && this.#expected.on(host, group)) return kind === 'affinity'
      return group.allowsDomain(strict.get(key), domain, selfSelects, this.#emptyFor(shape, group))
    }
    return (
      repelledDomains.every((group) => allows(group, false)) &&
      ownDomains.every((each) => allows(each.group, each.selfSelects, each.isPreferredAffinity))
    )
  }

  /** The zones that all rules about zones allow now; undefined without such rules. */
  validZones(shape: PodShape): readonly string[] | undefined {
    const { ownDomains, repelledDomains } = this.#groups.of(shape)
    const strict = this.#states.get(shape.strict.state).get(labels.zone)
    const rules = [...repelledDomains.map((group) => ({ group, selfSelects: false })), ...ownDomains]
    const valid = rules
      .filter(({ group }) => group.rule.key === labels.zone)
      .map(({ group, selfSelects }) =>
        group
          .propose(strict, undefined, selfSelects, this.#emptyFor(shape, group))
          .domains.map((id) => group.domains.name(id)),
      )
    return valid.length === 0
      ? undefined
      : valid.reduce((zones, others) => zones.filter((zone) => others.includes(zone)))
  }

  /**
   * Whether kube-scheduler, once these nodes exist, counts the same domains for spread constraints as were counted here.
   * They can only differ in domains without a node, where no node with room for the pod could be launched.
   * @param shapes the shapes of all pods.
   */
  predictsDomains(launches: readonly Launch[], shapes: Iterable<PodShape>): boolean {
    const { launched } = this.#nodes
    const opened = this.#nodes.ofLaunches(launches)
    const hasLess = (shape: PodShape, than: DomainsOfGroup, domains: DomainsOfGroup) =>
      this.#groups.of(shape).ownDomains.some(
        ({ group }) =>
          group.rule.kind === 'spread' &&
          than(group)
            .values()
            .some(
              (id) =>
                !domains(group).has(id) &&
                group.countIn(id) === 0 &&
                !this.#empty.isFillable(group, id, shape.amounts),
            ),
      )
    return (
      !this.#counts.placedShapes.values().some((shape) => hasLess(shape, opened, launched)) &&
      !Iterator.from(shapes).some((shape) => hasLess(shape, launched, opened))
    )
  }

  /** Counts a placed pod. */
  record(shape: PodShape, node: NodeView): void {
    this.#counts.place(shape, node)
    this.#count(shape, node, 1)
  }

  /** Removes a pod from the counts of its topology domains. Relaxed shapes must be observed before. */
  remove(shape: PodShape, node: NodeView): void {
    this.#count(shape, node, -1)
  }

  #count(shape: PodShape, node: NodeView, pods: 1 | -1): void {
    for (const group of this.#groups.counting(shape)) this.#counts.count(group, node, pods)
    for (const group of this.#groups.of(shape).inverse) this.#counts.countRepelling(group, node, pods)
  }

  /** Excludes a node, and the domains that only this node has; call {@link mark} before. */
  exclude(node: TopologyNode): void {
    this.#empty.exclude(node)
    this.#counts.note(() => {
      this.#empty.include(node)
    })
  }

  mark(): TopologyMark {
    return this.#counts.mark()
  }

  /** Undoes everything since the mark. */
  rollback(mark: TopologyMark): void {
    this.#counts.rollback(mark)
  }

  #emptyFor({ amounts }: PodShape, group: TopologyGroup): EmptyDomains {
    return this.#empty.of(group, amounts)
  }

  /** Whether a claim never gets the label of a rule, so that its node is in no domain of the rule. */
  #isOutOfReach(group: TopologyGroup, shape: PodShape, claim: Requirements): boolean {
    const { key } = group.rule
    const set = claim.get(key)
    if (this.#problem.policy.wellKnownLabels.has(key))
      return set === undefined && !group.hasDomains(this.#emptyFor(shape, group))
    // A label that may be absent is not put on the node.
    return set === undefined || allowsAbsence(set)
  }
}

/** Which domains without pods count, as a node exists or could be launched there. */
class EmptyDomainIndex {
  readonly #universe: DomainUniverse
  readonly #nodes: ReadonlyMap<string, TopologyNode>
  readonly #domains: NodeDomains
  readonly #excluded = new Set<TopologyNode>()
  /** The number of nodes in each domain, with excluded nodes. */
  readonly #nodesByDomain = new Map<TopologyGroup, ReadonlyMap<number, number>>()
  readonly #answers = new Map<TopologyGroup, Map<Amounts, EmptyDomains>>()

  constructor(universe: DomainUniverse, nodes: ReadonlyMap<string, TopologyNode>, domains: NodeDomains) {
    this.#universe = universe
    this.#nodes = nodes
    this.#domains = domains
  }

  /** Stops counting a node. */
  exclude(node: TopologyNode): void {
    this.#excluded.add(node)
  }

  /** Counts a node again. */
  include(node: TopologyNode): void {
    this.#excluded.delete(node)
  }

  /** For a pod with these requests. */
  of(group: TopologyGroup, amounts: Amounts): EmptyDomains {
    let byAmounts = this.#answers.get(group)
    if (byAmounts === undefined) {
      byAmounts = new Map()
      this.#answers.set(group, byAmounts)
    }
    let answer = byAmounts.get(amounts)
    if (answer === undefined) {
      answer = this.#answer(group, amounts)
      byAmounts.set(amounts, answer)
    }
    return answer
  }

  /** Whether a node is in the domain, or a node with room for these requests could be launched there. */
  isFillable(group: TopologyGroup, domain: number, amounts: Amounts): boolean {
    const { rule, domains } = group
    return (
      this.#hasNode(group, domain) ||
      this.#universe.holds(rule.key, rule.filter, domains.name(domain), amounts)
    )
  }

  #answer(group: TopologyGroup, amounts: Amounts): EmptyDomains {
    const { rule, domains } = group
    const sold = new Map<number, boolean>()
    const isSold = (id: number): boolean => {
      let known = sold.get(id)
      if (known === undefined) {
        known = this.#universe.holds(rule.key, rule.filter, domains.name(id), amounts)
        sold.set(id, known)
      }
      return known
    }
    return {
      exists: (id) =>
        this.#excluded.size === 0 ||
        this.#universe.has(rule.key, rule.filter, domains.name(id)) ||
        this.#hasNode(group, id),
      canBeFilled: (id) => isSold(id) || this.#hasNode(group, id) || this.#domains.launched(group).has(id),
    }
  }

  #hasNode(group: TopologyGroup, id: number): boolean {
    let nodes = this.#nodesByDomain.get(group)
    if (nodes === undefined) {
      const counted = new Map<number, number>()
      for (const node of this.#nodes.values()) {
        const domain = this.#domains.of(group, node)
        if (domain !== undefined) counted.set(domain, (counted.get(domain) ?? 0) + 1)
      }
      nodes = counted
      this.#nodesByDomain.set(group, nodes)
    }
    let left = nodes.get(id) ?? 0
    if (left > 0) for (const node of this.#excluded) if (this.#domains.of(group, node) === id) left--
    return left > 0
  }
}
