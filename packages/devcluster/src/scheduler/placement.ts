import { integerBetween, type Random } from '@tenon/runtime'
import { affinityMismatch, checkNode, type NodeEntry, type PodCycle, type Rejection } from '@tenon/filters'
import type { ScoredBalance } from '@tenon/api'
import type { DefaultSpread } from './filters/default-spread.ts'
import type { Nominations } from './queue/nominations.ts'
import { scoreNodes } from './scores.ts'

/** Where a pod is placed, or why it is not. */
export type Placement =
  | { readonly kind: 'node'; readonly entry: NodeEntry }
  | { readonly kind: 'none'; readonly diagnosis: Diagnosis }

/** Why a pod fits on no node. */
export interface Diagnosis {
  readonly total: number
  readonly rejections: ReadonlyMap<NodeEntry, Rejection>
}

interface Findings {
  readonly feasible: readonly NodeEntry[]
  /** Incomplete if there are feasible nodes. */
  readonly rejections: ReadonlyMap<NodeEntry, Rejection>
}

const leastNodesSampled = 100
const leastPercentage = 5

/** Finds a node for a pod: the nominated one if it fits, else the best of a sample of feasible ones. */
export class Placer {
  readonly #nominations: Nominations
  readonly #random: Random
  readonly #percentage: number
  readonly #defaultSpread: DefaultSpread
  readonly #balance: ScoredBalance
  /** Where the next search starts, so that all nodes get their turn. */
  #start = 0

  /** @param percentage of nodes to find before scoring; 0 adapts to the cluster's size. */
  constructor(
    nominations: Nominations,
    random: Random,
    percentage: number,
    defaultSpread: DefaultSpread,
    balance: ScoredBalance,
  ) {
    this.#nominations = nominations
    this.#random = random
    this.#percentage = percentage
    this.#defaultSpread = defaultSpread
    this.#balance = balance
  }

  /** @param nodes the nodes to consider. */
  place(cycle: PodCycle, nodes: readonly NodeEntry[] = cycle.view.index.nodes()): Placement {
    const { rejections, feasible } = this.find(cycle, nodes)
    if (feasible.length > 0) return { kind: 'node', entry: this.#best(cycle, feasible) }
    return { kind: 'none', diagnosis: { total: nodes.length, rejections } }
  }

  /** Feasible nodes: only the nominated one if it fits, else a sample; and why others are rejected. */
  find(cycle: PodCycle, nodes: readonly NodeEntry[] = cycle.view.index.nodes()): Findings {
    const { facts, early } = cycle
    if (early !== undefined)
      return { feasible: [], rejections: new Map(nodes.map((entry) => [entry, early])) }
    const nominated = this.#fittingNomination(cycle)
    if (nominated !== undefined && nodes.includes(nominated))
      return { feasible: [nominated], rejections: new Map() }
    const names = facts.nodes?.names
    const rejections = new Map<NodeEntry, Rejection>()
    const feasible =
      names === undefined ? this.#search(cycle, nodes, rejections) : this.#named(cycle, nodes, rejections)
    if (feasible.length === 0 && names !== undefined) {
      for (const entry of nodes) if (!rejections.has(entry)) rejections.set(entry, affinityMismatch)
    }
    return { feasible, rejections }
  }

  /**
   * The pod must fit both with and without the pods nominated for the node: they may go elsewhere, and rules such as
   * affinity may depend on them.
   */
  check(cycle: PodCycle, entry: NodeEntry): Rejection | undefined {
    const ahead = this.#nominations.ahead(cycle.facts, entry.name)
    if (ahead.length > 0) {
      const index = cycle.view.index
      for (const facts of ahead) index.assign(facts, entry.name)
      const rejection = checkNode(cycle, entry)
      for (const facts of ahead) index.release(facts.uid)
      if (rejection !== undefined) return rejection
    }
    return checkNode(cycle, entry)
  }

  /** The existing node that the cycle's pod is nominated for. */
  nominatedNode(cycle: PodCycle): NodeEntry | undefined {
    const name = this.#nominations.nodeOf(cycle.facts.uid)
    return name === undefined ? undefined : cycle.view.index.node(name)
  }

  #fittingNomination(cycle: PodCycle): NodeEntry | undefined {
    const entry = this.nominatedNode(cycle)
    return entry !== undefined && this.check(cycle, entry) === undefined ? entry : undefined
  }

  #named(cycle: PodCycle, nodes: readonly NodeEntry[], rejections: Map<NodeEntry, Rejection>): NodeEntry[] {
    const { names = [] } = cycle.facts.nodes ?? {}
    return names.flatMap((name) => {
      const known = cycle.view.index.node(name)
      const entry = known !== undefined && nodes.includes(known) ? known : undefined
      const rejection = entry === undefined ? undefined : this.check(cycle, entry)
      if (entry !== undefined && rejection !== undefined) rejections.set(entry, rejection)
      return entry === undefined || rejection !== undefined ? [] : [entry]
    })
  }

  #search(cycle: PodCycle, nodes: readonly NodeEntry[], rejections: Map<NodeEntry, Rejection>): NodeEntry[] {
    const wanted = this.#sampleSize(nodes.length)
    const feasible: NodeEntry[] = []
    let seen = 0
    while (seen < nodes.length && feasible.length < wanted) {
      const entry = nodes[(this.#start + seen) % nodes.length] as NodeEntry
      const rejection = this.check(cycle, entry)
      if (rejection === undefined) feasible.push(entry)
      else rejections.set(entry, rejection)
      seen++
    }
    this.#start = nodes.length === 0 ? 0 : (this.#start + seen) % nodes.length
    return feasible
  }

  #sampleSize(total: number): number {
    if (total < leastNodesSampled) return total
    const adaptive = Math.max(leastPercentage, 50 - Math.floor(total / 125))
    const percentage = this.#percentage === 0 ? adaptive : this.#percentage
    return Math.max(leastNodesSampled, Math.floor((total * percentage) / 100))
  }

  /** The highest score; ties are decided at random. */
  #best(cycle: PodCycle, feasible: readonly NodeEntry[]): NodeEntry {
    const best = this.best(cycle, feasible)
    return best[best.length === 1 ? 0 : integerBetween(this.#random, 0, best.length - 1)] as NodeEntry
  }

  /** Those with the highest score. */
  best(cycle: PodCycle, feasible: readonly NodeEntry[]): readonly NodeEntry[] {
    if (feasible.length <= 1) return feasible
    const scores = scoreNodes(cycle, feasible, this.#defaultSpread, this.#balance)
    let highest = Number.NEGATIVE_INFINITY
    for (const score of scores) if (score > highest) highest = score
    return feasible.filter((_, index) => scores[index] === highest)
  }
}
