/** One topology rule and how its pods are spread over the domains of a label (scheduling.md 9). */
import { type LabelSelector, labels, matchesSelector, type Taint, type Toleration } from '@tenon/api'
import { has, type ValueSet } from '../../requirements/requirement.ts'
import { compatible, type Requirements } from '../../requirements/requirements.ts'
import type { SelectablePod } from '../../snapshot/problem.ts'
import { untolerated } from '../taints.ts'
import type { DomainNames } from './domain-names.ts'

type GroupKind = 'spread' | 'affinity' | 'antiAffinity'

/** Which nodes count for a spread; affinity groups count everywhere. */
export interface NodeFilter {
  /** Any of these must hold of a node; empty = every node. */
  readonly alternatives: readonly Requirements[]
  /** Set when tainted nodes count only if these tolerate the taints. */
  readonly tolerations: readonly Toleration[] | undefined
}

/** What makes two pods' rules one group. */
export interface GroupRule {
  readonly kind: GroupKind
  readonly key: string
  readonly namespaces: ReadonlySet<string>
  readonly selector: LabelSelector | undefined
  readonly maxSkew: number
  readonly minDomains: number | undefined
  readonly filter: NodeFilter
}

const nothingUndefined: ReadonlySet<string> = new Set()
const unknown = -1

/** Domains a pod, and a candidate, may take: a mark for each, undefined = all. */
type Allowed = Uint8Array | undefined

export class TopologyGroup {
  readonly rule: GroupRule
  readonly domains: DomainNames
  /** Whether the rule is about single nodes. */
  readonly isHost: boolean
  /** Whether what counts depends on the host name, so that nodes alike otherwise may differ. */
  readonly filtersHosts: boolean
  /** Pods by domain, -1 for domains the rule does not know. */
  #counts = new Int32Array(8).fill(unknown)
  readonly #populated = new Set<number>()

  constructor(rule: GroupRule, domains: DomainNames) {
    this.rule = rule
    this.domains = domains
    this.isHost = rule.key === labels.hostname
    this.filtersHosts = rule.filter.alternatives.some((wanted) => wanted.has(labels.hostname))
  }

  /** Makes a domain known, with no pod in it yet. */
  addDomain(id: number): void {
    this.#reserve(id)
    if (this.#counts[id] === unknown) this.#counts[id] = 0
  }

  /** Counts pods; a negative number takes back what was counted. */
  record(id: number, pods = 1): void {
    if (pods === 0) return
    this.addDomain(id)
    const count = (this.#counts[id] as number) + pods
    this.#counts[id] = count
    if (count > 0) this.#populated.add(id)
    else this.#populated.delete(id)
  }

  /** Whether the domain is known. */
  knows(id: number): boolean {
    return (this.#counts[id] ?? unknown) !== unknown
  }

  /** Makes a domain without pods unknown again. */
  forgetDomain(id: number): void {
    if (this.#counts[id] === 0) this.#counts[id] = unknown
  }

  /** Pods in a domain; 0 for one that is not known. */
  countIn(id: number): number {
    const count = this.#counts[id]
    return count === undefined || count < 0 ? 0 : count
  }

  /** Domains with at least one pod. */
  get populated(): ReadonlySet<number> {
    return this.#populated
  }

  /** Whether any domain is known. */
  get hasDomains(): boolean {
    return this.#counts.some((count) => count !== unknown)
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
    return this.rule.namespaces.has(pod.namespace) && matchesSelector(this.rule.selector, pod.labels)
  }

  /** Whether a node counts for this group. */
  admits(node: Requirements, taints: readonly Taint[]): boolean {
    const { alternatives, tolerations } = this.rule.filter
    if (tolerations !== undefined && untolerated(taints, tolerations).length > 0) return false
    return (
      alternatives.length === 0 || alternatives.some((wanted) => compatible(node, wanted, nothingUndefined))
    )
  }

  /** Whether a pod may go to this host. @param wanted host names the pod allows, undefined for all. */
  allowsHost(host: number, wanted: ValueSet | undefined, selfSelects: boolean): boolean {
    switch (this.rule.kind) {
      case 'spread':
        return this.countIn(host) + (selfSelects ? 1 : 0) <= this.rule.maxSkew
      case 'antiAffinity':
        return this.countIn(host) === 0
      case 'affinity':
        if (wanted !== undefined && !has(wanted, this.domains.name(host))) return false
        return this.countIn(host) > 0 || (selfSelects && this.mayBootstrap(wanted))
    }
  }

  /** A pod that selects itself may be the first one where no other can be reached. */
  mayBootstrap(wanted: ValueSet | undefined): boolean {
    for (const id of this.#populated)
      if (wanted === undefined || has(wanted, this.domains.name(id))) return false
    return true
  }

  /**
   * The domains in which a pod may be placed; empty when there is none. Not for rules about hosts.
   * @param pod values the pod allows for the key, undefined for all.
   * @param node values the candidate may have, undefined for all.
   * @param selfSelects whether the pod counts for its own rule.
   */
  propose(pod: ValueSet | undefined, node: ValueSet | undefined, selfSelects: boolean): readonly number[] {
    const ofPod = this.domains.allowedBy(pod)
    const ofNode = this.domains.allowedBy(node)
    switch (this.rule.kind) {
      case 'spread':
        return this.#spread(ofPod, ofNode, selfSelects)
      case 'affinity':
        return this.#affinity(ofPod, ofNode, selfSelects, pod)
      case 'antiAffinity':
        return this.#select((count, id) => count === 0 && allows(ofPod, id) && allows(ofNode, id))
    }
  }

  /** All domains in which the rule would have the pod now, whichever it would choose. Not for rules about hosts. */
  validDomains(pod: ValueSet | undefined, selfSelects: boolean): readonly number[] {
    if (this.rule.kind !== 'spread') return this.propose(pod, undefined, selfSelects)
    const ofPod = this.domains.allowedBy(pod)
    const least = this.#leastCount(ofPod)
    const more = selfSelects ? 1 : 0
    return this.#select((count, id) => allows(ofPod, id) && count + more - least <= this.rule.maxSkew)
  }

  /** The emptiest domain that keeps the skew; among equals the first by name. */
  #spread(pod: Allowed, node: Allowed, selfSelects: boolean): readonly number[] {
    const least = this.#leastCount(pod)
    let best = unknown
    let bestCount = Number.POSITIVE_INFINITY
    for (let id = 0; id < this.#counts.length; id++) {
      const counted = this.#counts[id] as number
      if (counted < 0 || !allows(node, id)) continue
      const count = counted + (selfSelects ? 1 : 0)
      if (count - least > this.rule.maxSkew || count > bestCount) continue
      if (count < bestCount || this.domains.name(id) < this.domains.name(best)) best = id
      bestCount = count
    }
    return best === unknown ? [] : [best]
  }

  #leastCount(pod: Allowed): number {
    let least = Number.POSITIVE_INFINITY
    let allowed = 0
    for (let id = 0; id < this.#counts.length; id++) {
      const count = this.#counts[id] as number
      if (count < 0 || !allows(pod, id)) continue
      allowed++
      if (count < least) least = count
    }
    if (allowed === 0) return 0
    return this.rule.minDomains !== undefined && allowed < this.rule.minDomains ? 0 : least
  }

  #affinity(
    pod: Allowed,
    node: Allowed,
    selfSelects: boolean,
    wanted: ValueSet | undefined,
  ): readonly number[] {
    const populated = this.#select((count, id) => count > 0 && allows(pod, id) && allows(node, id))
    if (populated.length > 0) return populated
    if (!selfSelects || !this.mayBootstrap(wanted)) return []
    const known = this.#select((count, id) => count >= 0 && allows(pod, id))
    const first = known.find((id) => allows(node, id)) ?? known[0]
    return first === undefined ? [] : [first]
  }

  /** Known domains in order of their names. */
  #select(isWanted: (count: number, id: number) => boolean): readonly number[] {
    const found: number[] = []
    for (let id = 0; id < this.#counts.length; id++) {
      const count = this.#counts[id] as number
      if (count >= 0 && isWanted(count, id)) found.push(id)
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

function allows(allowed: Allowed, id: number): boolean {
  return allowed === undefined || allowed[id] === 1
}
