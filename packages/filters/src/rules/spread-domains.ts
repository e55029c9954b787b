import { ownValue, untoleratedTaint } from '@tenon/api'
import type { ClusterIndex } from '../cluster/cluster-index.ts'
import type { NodeEntry } from '../cluster/node-entry.ts'
import type { PodFacts, SpreadConstraint } from '../pods/pod-facts.ts'

/** The nodes that a spread constraint counts, and their domains. */
export interface EligibleNodes {
  readonly nodes: ReadonlySet<NodeEntry>
  readonly domains: ReadonlySet<string>
}

const keptAnswers = 1024

/**
 * Which nodes count for a spread constraint: those with the topology keys of all the pod's constraints that also, by
 * its policies, match the pod's node affinity and tolerations. Cached until a node changes.
 */
export class SpreadDomains {
  readonly #index: ClusterIndex
  readonly #answers = new Map<string, EligibleNodes>()
  #nodeVersion = -1

  constructor(index: ClusterIndex) {
    this.#index = index
  }

  of(facts: PodFacts, constraint: SpreadConstraint, keys: readonly string[]): EligibleNodes {
    if (this.#nodeVersion !== this.#index.nodeVersion || this.#answers.size >= keptAnswers) {
      this.#answers.clear()
      this.#nodeVersion = this.#index.nodeVersion
    }
    const affinity = constraint.honourAffinity ? (facts.nodes?.key ?? '') : ''
    const taints = constraint.honourTaints ? JSON.stringify(facts.tolerations) : ''
    const question = `${constraint.topologyKey}\n${keys.join()}\n${affinity}\n${taints}`
    let answer = this.#answers.get(question)
    if (answer === undefined) {
      answer = this.#find(facts, constraint, keys)
      this.#answers.set(question, answer)
    }
    return answer
  }

  #find(facts: PodFacts, constraint: SpreadConstraint, keys: readonly string[]): EligibleNodes {
    const nodes = this.#index.nodes().filter((entry) => {
      if (keys.some((key) => ownValue(entry.labels, key) === undefined)) return false
      if (constraint.honourAffinity && !(facts.nodes?.matches(entry.name, entry.labels) ?? true)) return false
      return !constraint.honourTaints || untoleratedTaint(entry.hardTaints, facts.tolerations) === undefined
    })
    const domains = nodes.flatMap((entry) => ownValue(entry.labels, constraint.topologyKey) ?? [])
    return { nodes: new Set(nodes), domains: new Set(domains) }
  }
}
