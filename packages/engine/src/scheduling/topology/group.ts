/** One topology rule and how its pods are spread over the domains of a label (scheduling.md 9). */
import { labels, type LabelSelector, matchesSelector, type Taint } from '@tenon/api'
import { has, type ValueSet } from '../../requirements/requirement.ts'
import type { Requirements } from '../../requirements/requirements.ts'
import type { SelectablePod } from '../problem/problem.ts'
import { admits, filterIdentity, type NodeFilter } from './node-filter.ts'

type GroupKind = 'spread' | 'affinity' | 'antiAffinity'

/** The pods that a rule counts. */
export interface PodSelection {
  readonly namespaces: ReadonlySet<string>
  /** Absent: none. */
  readonly selector: LabelSelector | undefined
}

/** A rule. Equal rules of different pods share one group. */
export interface GroupRule extends PodSelection {
  readonly kind: GroupKind
  readonly key: string
  /** Other selections that must include the pods too. */
  readonly also: readonly PodSelection[]
  readonly maxSkew: number
  readonly minDomains: number | undefined
  readonly filter: NodeFilter
}

const unknown = -1

/** 1 for each domain that is allowed; undefined = all. */
type Allowed = Uint8Array | undefined

/** The domains that a rule proposes for a pod. */
export interface Proposal {
  /** Domains in order of their names; empty when there is none. */
  readonly domains: readonly number[]
  /**
   * Set when the placement must settle on one domain: the rank of each, in the same order; the lowest is the best.
   * Undefined when it may stay open which of them it gets.
   */
  readonly ranks: readonly number[] | undefined
}

/** Which domains without pods of the group count for a pod. */
export interface EmptyDomains {
  /** Whether a node is in the domain, or a NodePool could launch one there. */
  exists(domain: number): boolean
  /**
   * Whether a node is in the domain, or is assumed to be launched there, or a NodePool could launch one there with room
   * for the pod.
   */
  canBeFilled(domain: number): boolean
}

/** Breaks ties between domains with equally many pods. */
const lessThanAPod = 0.5
const nowhere: Proposal = { domains: [], ranks: undefined }

export class TopologyGroup {
  readonly rule: GroupRule
  readonly domains: DomainNames
  /** Whether the domains are hosts. */
  readonly isHost: boolean
  /** Whether the node filter names hosts, so that nodes with equal labels may differ. */
  readonly filtersHosts: boolean
  /** Pods by domain, -1 for domains the rule does not know. */
  #counts = new Int32Array(8).fill(unknown)
  readonly #populated = new Set<number>()
  readonly #followers: ValueSet[] = []
  /** Domains that are the only possible domain of some pod. */
  readonly #pinned = new Set<number>()
  /** Pods on claims whose domain is still open, by host. */
  readonly #unlocated = new Map<number, number>()

  constructor(rule: GroupRule, domains: DomainNames) {
    this.rule = rule
    this.domains = domains
    this.isHost = rule.key === labels.hostname
    this.filtersHosts = rule.filter.alternatives.some((wanted) => wanted.has(labels.hostname))
  }

  /** Adds a domain without pods, unless it is known. */
  addDomain(id: number): void {
    this.#reserve(id)
    if (this.#counts[id] === unknown) this.#counts[id] = 0
  }

  /** Counts pods; a negative number removes them from the count. */
  record(id: number, pods = 1): void {
    if (pods === 0) return
    this.addDomain(id)
    const count = (this.#counts[id] as number) + pods
    this.#counts[id] = count
    if (count > 0) this.#populated.add(id)
    else this.#populated.delete(id)
  }

  /** Counts pods on a claim whose domain is still open. */
  recordUnlocated(host: number, pods: number): void {
    this.#unlocated.set(host, (this.#unlocated.get(host) ?? 0) + pods)
  }

  /** Whether such pods are on this claim. */
  isUnlocatedOn(host: number): boolean {
    return (this.#unlocated.get(host) ?? 0) > 0
  }

  /** Whether the domain is known. */
  knows(id: number): boolean {
    return (this.#counts[id] ?? unknown) !== unknown
  }

  /** Removes a domain without pods. */
  forgetDomain(id: number): void {
    if (this.#counts[id] === 0) this.#counts[id] = unknown
  }

  /** Pods in a domain; 0 if it is unknown. */
  countIn(id: number): number {
    const count = this.#counts[id]
    return count === undefined || count < 0 ? 0 : count
  }

  /** Domains with at least one pod. */
  get populated(): ReadonlySet<number> {
    return this.#populated
  }

  /** Whether there is any domain. */
  hasDomains(empty: EmptyDomains): boolean {
    return this.#counts.some((count, id) => count > 0 || (count === 0 && empty.exists(id)))
  }

  /** Known domains and their counts, for explanations; of hosts only those with pods. */
  counts(): ReadonlyMap<string, number> {
    const named = new Map<string, number>()
    for (let id = 0; id < this.#counts.length; id++) {
      const count = this.#counts[id] as number
      if (count > 0 || (count === 0 && !this.isHost)) named.set(this.domains.name(id), count)
    }
    return named
  }

  selects(pod: SelectablePod): boolean {
    return isIn(this.rule, pod) && this.rule.also.every((selection) => isIn(selection, pod))
  }

  /** Whether a node counts for this group. */
  admits(node: Requirements, taints: readonly Taint[]): boolean {
    return admits(this.rule.filter, node, taints)
  }

  /**
   * Whether a pod may go to this host.
   * @param wanted host names the pod allows, undefined for all.
   * @param isExpected whether a DaemonSet will put a pod there that the group selects.
   */
  allowsHost(host: number, wanted: ValueSet | undefined, selfSelects: boolean, isExpected: boolean): boolean {
    switch (this.rule.kind) {
      case 'spread':
        return this.countIn(host) + (selfSelects ? 1 : 0) <= this.rule.maxSkew
      case 'antiAffinity':
        return this.countIn(host) === 0 && !isExpected
      case 'affinity':
        if (wanted !== undefined && !has(wanted, this.domains.name(host))) return false
        return this.countIn(host) > 0 || isExpected || (selfSelects && this.mayBootstrap)
    }
  }

  /** Whether a pod that selects itself may be the first: kube-scheduler allows that while no domain has such a pod. */
  get mayBootstrap(): boolean {
    return this.#populated.size === 0
  }

  /**
   * Records the domains of a pod that selects itself by affinity. The first such pod goes to the domain that most of
   * them can reach: a pod with a zonal volume cannot choose.
   * @param reachable undefined for all.
   */
  addFollower(reachable: ValueSet | undefined): void {
    if (reachable !== undefined) this.#followers.push(reachable)
  }

  /** Records that some pod of a spread constraint can only be in this domain: others prefer domains with as many pods. */
  addPinned(domain: number): void {
    this.#pinned.add(domain)
  }

  /**
   * The domains that the rule allows, unless it is about hosts.
   * @param pod values the pod allows for the key, undefined for all.
   * @param node values the candidate may have, undefined for all.
   * @param selfSelects whether the pod counts for its own rule.
   */
  propose(
    pod: ValueSet | undefined,
    node: ValueSet | undefined,
    selfSelects: boolean,
    empty: EmptyDomains,
  ): Proposal {
    const ofPod = this.domains.allowedBy(pod)
    const ofNode = this.domains.allowedBy(node)
    const isOpen = (id: number) => allows(ofPod, id) && allows(ofNode, id)
    switch (this.rule.kind) {
      case 'spread': {
        const most = this.rule.maxSkew + this.#leastCount(empty) - (selfSelects ? 1 : 0)
        const domains = this.#select(empty, (count, id) => count <= most && isOpen(id))
        return {
          domains,
          ranks: domains.map((id) => this.countIn(id) + (this.#pinned.has(id) ? lessThanAPod : 0)),
        }
      }
      case 'affinity': {
        const populated = this.#select(empty, (count, id) => count > 0 && isOpen(id))
        if (populated.length > 0) return { domains: populated, ranks: undefined }
        if (!selfSelects || !this.mayBootstrap) return nowhere
        const domains = this.#select(empty, (_, id) => isOpen(id))
        return { domains, ranks: domains.map((id) => this.#leftBehindIn(id)) }
      }
      case 'antiAffinity':
        return { domains: this.#select(empty, (count, id) => count === 0 && isOpen(id)), ranks: undefined }
    }
  }

  /** Whether {@link propose} would allow this domain, which is that of an existing node. */
  allowsDomain(pod: ValueSet | undefined, name: string, selfSelects: boolean, empty: EmptyDomains): boolean {
    const id = this.domains.idOf(name)
    if (!allows(this.domains.allowedBy(pod), id)) return false
    const count = this.#counts[id] ?? unknown
    switch (this.rule.kind) {
      case 'spread':
        if (count < 0) return false
        return count + (selfSelects ? 1 : 0) - this.#leastCount(empty) <= this.rule.maxSkew
      case 'affinity':
        if (count > 0) return true
        return (
          selfSelects &&
          this.mayBootstrap &&
          count === 0 &&
          this.#leftBehindIn(id) === this.#fewestLeft(empty)
        )
      case 'antiAffinity':
        return count <= 0
    }
  }

  /** Followers that cannot reach a domain. */
  #leftBehindIn(id: number): number {
    const name = this.domains.name(id)
    return this.#followers.reduce((left, reachable) => left + (has(reachable, name) ? 0 : 1), 0)
  }

  #fewestLeft(empty: EmptyDomains): number {
    let fewest = Number.POSITIVE_INFINITY
    if (this.#followers.length === 0) return 0
    for (let id = 0; id < this.#counts.length; id++)
      if ((this.#counts[id] as number) >= 0 && empty.canBeFilled(id))
        fewest = Math.min(fewest, this.#leftBehindIn(id))
    return fewest
  }

  /**
   * The count of the emptiest domain (the global minimum). kube-scheduler counts only domains of nodes. Domains of nodes
   * that could be launched count here too, so that pods are spread over them.
   */
  #leastCount(empty: EmptyDomains): number {
    if (this.#populated.size === 0) return 0
    for (let id = 0; id < this.#counts.length; id++)
      if (this.#counts[id] === 0 && empty.canBeFilled(id)) return 0
    if (this.#populated.size < (this.rule.minDomains ?? 0)) return 0
    let least = Number.POSITIVE_INFINITY
    for (const id of this.#populated) least = Math.min(least, this.#counts[id] as number)
    return least
  }

  /** Known domains in order of their names. */
  #select(empty: EmptyDomains, isWanted: (count: number, id: number) => boolean): readonly number[] {
    const found: number[] = []
    for (let id = 0; id < this.#counts.length; id++) {
      const count = this.#counts[id] as number
      if (count < 0 || !isWanted(count, id)) continue
      if (count > 0 || empty.exists(id)) found.push(id)
    }
    return found.length < 2
      ? found
      : found.toSorted((a, b) => (this.domains.name(a) < this.domains.name(b) ? -1 : 1))
  }

  #reserve(id: number): void {
    if (id < this.#counts.length) return
    const larger = new Int32Array(Math.max(id + 1, 2 * this.#counts.length)).fill(unknown)
    larger.set(this.#counts)
    this.#counts = larger
  }
}

function isIn({ namespaces, selector }: PodSelection, pod: SelectablePod): boolean {
  return namespaces.has(pod.namespace) && matchesSelector(selector, pod.labels)
}

/** Equal for equal selections. */
export function selectionIdentity({ namespaces, selector }: PodSelection): string {
  return JSON.stringify([[...namespaces].toSorted(), selector])
}

function allows(allowed: Allowed, id: number): boolean {
  return allowed === undefined || allowed[id] === 1
}

/** Finds out which rules share one group. The rules of a pod share long lists, so each list is read once. */
export class RuleIdentities {
  readonly #numbers = new Map<string, number>()
  readonly #lists = new WeakMap<object, number>()

  /** Equal for rules that share one group. */
  of(rule: GroupRule): string {
    const { kind, key, also, maxSkew, minDomains, filter } = rule
    const { alternatives, tolerations } = filter
    return JSON.stringify([
      kind,
      key,
      this.#numberOf(selectionIdentity(rule)),
      this.#ofList(also, () => JSON.stringify(also.map(selectionIdentity).toSorted())),
      maxSkew === Number.POSITIVE_INFINITY ? null : maxSkew,
      minDomains,
      this.#ofList(alternatives, () => filterIdentity({ alternatives, tolerations: undefined })),
      tolerations && this.#ofList(tolerations, () => JSON.stringify(tolerations)),
    ])
  }

  #ofList(list: object, textOf: () => string): number {
    let number = this.#lists.get(list)
    if (number === undefined) {
      number = this.#numberOf(textOf())
      this.#lists.set(list, number)
    }
    return number
  }

  #numberOf(text: string): number {
    let number = this.#numbers.get(text)
    if (number === undefined) {
      number = this.#numbers.size
      this.#numbers.set(text, number)
    }
    return number
  }
}

interface Bits {
  readonly bits: Uint8Array
  readonly known: number
}

/** The domains of one label key as numbers, in the order in which they became known. */
export class DomainNames {
  readonly #names: string[] = []
  readonly #ids = new Map<string, number>()
  readonly #allowed = new WeakMap<ValueSet, Bits>()

  get size(): number {
    return this.#names.length
  }

  idOf(name: string): number {
    let id = this.#ids.get(name)
    if (id === undefined) {
      id = this.#names.length
      this.#names.push(name)
      this.#ids.set(name, id)
    }
    return id
  }

  name(id: number): string {
    return this.#names[id] as string
  }

  /** 1 for each domain the set allows; undefined stands for all of them. */
  allowedBy(set: ValueSet | undefined): Uint8Array | undefined {
    if (set === undefined) return undefined
    const known = this.#allowed.get(set)
    if (known !== undefined && known.known === this.#names.length) return known.bits
    const bits = new Uint8Array(this.#names.length)
    for (const [id, name] of this.#names.entries()) if (has(set, name)) bits[id] = 1
    this.#allowed.set(set, { bits, known: this.#names.length })
    return bits
  }
}
