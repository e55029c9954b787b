/** Which domains without pods count, as a node exists or could be launched there. */
import type { TopologyNode } from '../../input/input.ts'
import type { Amounts } from '../pods/resource-space.ts'
import type { DomainUniverse } from './domains.ts'
import type { EmptyDomains, TopologyGroup } from './group.ts'
import type { NodeDomains } from './node-domains.ts'

export class EmptyDomainIndex {
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
