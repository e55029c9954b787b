/** Which domains without pods are there all the same, as nodes are or could be. */
import type { TopologyNode } from '../../input/input.ts'
import type { Amounts } from '../pods/resource-space.ts'
import type { DomainUniverse } from './domains.ts'
import type { EmptyDomains, TopologyGroup } from './group.ts'

export class DomainSight {
  readonly #universe: DomainUniverse
  readonly #nodes: ReadonlyMap<string, TopologyNode>
  readonly #domainAt: (group: TopologyGroup, node: TopologyNode) => number | undefined
  readonly #isLaunched: (group: TopologyGroup, domain: number) => boolean
  readonly #excluded = new Set<TopologyNode>()
  /** How many nodes are in each domain, those excluded too. */
  readonly #nodesByDomain = new Map<TopologyGroup, ReadonlyMap<number, number>>()
  readonly #answers = new Map<TopologyGroup, Map<Amounts, EmptyDomains>>()

  /**
   * @param domainAt the domain in which a group counts a node.
   * @param isLaunched whether the group counts a node in the domain that is taken to be launched.
   */
  constructor(
    universe: DomainUniverse,
    nodes: ReadonlyMap<string, TopologyNode>,
    domainAt: (group: TopologyGroup, node: TopologyNode) => number | undefined,
    isLaunched: (group: TopologyGroup, domain: number) => boolean,
  ) {
    this.#isLaunched = isLaunched
    this.#universe = universe
    this.#nodes = nodes
    this.#domainAt = domainAt
  }

  /** Counts a node no more. */
  exclude(node: TopologyNode): void {
    this.#excluded.add(node)
  }

  /** Counts a node again. */
  include(node: TopologyNode): void {
    this.#excluded.delete(node)
  }

  /** As a pod sees them that asks for these amounts. */
  by(group: TopologyGroup, amounts: Amounts): EmptyDomains {
    let byAmounts = this.#answers.get(group)
    if (byAmounts === undefined) {
      byAmounts = new Map()
      this.#answers.set(group, byAmounts)
    }
    let answer = byAmounts.get(amounts)
    if (answer === undefined) {
      answer = this.#lookOn(group, amounts)
      byAmounts.set(amounts, answer)
    }
    return answer
  }

  /** Whether a node is in the domain, or one with room for these amounts could be launched there. */
  isFillable(group: TopologyGroup, domain: number, amounts: Amounts): boolean {
    const { rule, domains } = group
    return (
      this.#hasNode(group, domain) ||
      this.#universe.holds(rule.key, rule.filter, domains.name(domain), amounts)
    )
  }

  #lookOn(group: TopologyGroup, amounts: Amounts): EmptyDomains {
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
      canBeFilled: (id) => isSold(id) || this.#hasNode(group, id) || this.#isLaunched(group, id),
    }
  }

  #hasNode(group: TopologyGroup, id: number): boolean {
    let nodes = this.#nodesByDomain.get(group)
    if (nodes === undefined) {
      const counted = new Map<number, number>()
      for (const node of this.#nodes.values()) {
        const domain = this.#domainAt(group, node)
        if (domain !== undefined) counted.set(domain, (counted.get(domain) ?? 0) + 1)
      }
      nodes = counted
      this.#nodesByDomain.set(group, nodes)
    }
    let left = nodes.get(id) ?? 0
    if (left > 0) for (const node of this.#excluded) if (this.#domainAt(group, node) === id) left--
    return left > 0
  }
}
