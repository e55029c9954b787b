/** One topology rule and how its pods are spread over the domains of a label (scheduling.md 9). */
import { type LabelSelector, labels, matchesSelector, type Taint, type Toleration } from '@tenon/api'
import { has, type ValueSet } from '../../requirements/requirement.ts'
import { incompatibility, type Requirements } from '../../requirements/requirements.ts'
import { untolerated } from '../taints.ts'

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

/** Pods as selectors see them. */
export interface SelectablePod {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}

const nothingUndefined: ReadonlySet<string> = new Set()

export class TopologyGroup {
  readonly rule: GroupRule
  readonly #counts = new Map<string, number>()
  /** Domains that hold at least one counted pod. */
  #populated = 0

  constructor(rule: GroupRule) {
    this.rule = rule
  }

  /** Makes a domain known, with no pod in it yet. */
  addDomain(domain: string): void {
    if (!this.#counts.has(domain)) this.#counts.set(domain, 0)
  }

  /** Counts one pod. */
  record(domain: string): void {
    const before = this.#counts.get(domain) ?? 0
    if (before === 0) this.#populated++
    this.#counts.set(domain, before + 1)
  }

  /** Known domains and their counts, for explanations. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  selects(pod: SelectablePod): boolean {
    return this.rule.namespaces.has(pod.namespace) && matchesSelector(this.rule.selector, pod.labels)
  }

  /** Whether a node counts for this group. */
  admits(node: Requirements, taints: readonly Taint[]): boolean {
    const { alternatives, tolerations } = this.rule.filter
    if (tolerations !== undefined && untolerated(taints, tolerations).length > 0) return false
    return (
      alternatives.length === 0 ||
      alternatives.some((wanted) => incompatibility(node, wanted, nothingUndefined) === undefined)
    )
  }

  /**
   * The domains in which a pod may be placed; empty when there is none.
   * @param pod values the pod allows for the key, undefined for all.
   * @param node values the candidate may have, undefined for all.
   * @param selfSelects whether the pod counts for its own rule.
   */
  propose(pod: ValueSet | undefined, node: ValueSet | undefined, selfSelects: boolean): readonly string[] {
    const host = this.rule.key === labels.hostname ? onlyValue(node) : undefined
    switch (this.rule.kind) {
      case 'spread':
        return host === undefined
          ? this.#spread(pod, node, selfSelects)
          : this.#spreadOnHost(host, selfSelects)
      case 'affinity':
        return host === undefined
          ? this.#affinity(pod, node, selfSelects)
          : this.#affinityOnHost(host, pod, selfSelects)
      case 'antiAffinity':
        return host === undefined
          ? this.#antiAffinity(pod, node)
          : (this.#counts.get(host) ?? 0) === 0
            ? [host]
            : []
    }
  }

  #spreadOnHost(host: string, selfSelects: boolean): readonly string[] {
    return (this.#counts.get(host) ?? 0) + (selfSelects ? 1 : 0) <= this.rule.maxSkew ? [host] : []
  }

  /** The emptiest domain that keeps the skew; among equals the first by name. */
  #spread(pod: ValueSet | undefined, node: ValueSet | undefined, selfSelects: boolean): readonly string[] {
    const least = this.#leastCount(pod)
    let best: string | undefined
    let bestCount = Number.POSITIVE_INFINITY
    for (const [domain, counted] of this.#counts) {
      if (node !== undefined && !has(node, domain)) continue
      const count = counted + (selfSelects ? 1 : 0)
      if (count - least > this.rule.maxSkew || count > bestCount) continue
      if (count < bestCount || best === undefined || domain < best) best = domain
      bestCount = count
    }
    return best === undefined ? [] : [best]
  }

  #leastCount(pod: ValueSet | undefined): number {
    if (this.rule.key === labels.hostname) return 0
    let least = Number.POSITIVE_INFINITY
    let allowed = 0
    for (const [domain, count] of this.#counts) {
      if (pod !== undefined && !has(pod, domain)) continue
      allowed++
      least = Math.min(least, count)
    }
    if (allowed === 0) return 0
    return this.rule.minDomains !== undefined && allowed < this.rule.minDomains ? 0 : least
  }

  #affinity(pod: ValueSet | undefined, node: ValueSet | undefined, selfSelects: boolean): readonly string[] {
    const populated: string[] = []
    for (const [domain, count] of this.#counts) {
      if (count > 0 && allows(pod, domain) && allows(node, domain)) populated.push(domain)
    }
    if (populated.length > 0) return populated.toSorted()
    if (!selfSelects || !this.#mayBootstrap(pod)) return []
    const known = [...this.#counts.keys()].filter((domain) => allows(pod, domain)).toSorted()
    const first = known.find((domain) => allows(node, domain)) ?? known[0]
    return first === undefined ? [] : [first]
  }

  #affinityOnHost(host: string, pod: ValueSet | undefined, selfSelects: boolean): readonly string[] {
    if (!allows(pod, host)) return []
    if ((this.#counts.get(host) ?? 0) > 0) return [host]
    return selfSelects && this.#mayBootstrap(pod) ? [host] : []
  }

  /** A pod that selects itself may be the first one where no other can be reached. */
  #mayBootstrap(pod: ValueSet | undefined): boolean {
    if (this.#populated === 0) return true
    for (const [domain, count] of this.#counts) if (count > 0 && allows(pod, domain)) return false
    return true
  }

  #antiAffinity(pod: ValueSet | undefined, node: ValueSet | undefined): readonly string[] {
    const free: string[] = []
    for (const [domain, count] of this.#counts) {
      if (count === 0 && allows(pod, domain) && allows(node, domain)) free.push(domain)
    }
    return free.toSorted()
  }
}

function allows(set: ValueSet | undefined, value: string): boolean {
  return set === undefined || has(set, value)
}

function onlyValue(set: ValueSet | undefined): string | undefined {
  if (set === undefined || set.complement || set.values.size !== 1) return undefined
  return set.values.values().next().value
}
