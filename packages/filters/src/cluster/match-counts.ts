import { ownValue } from '@tenon/api'
import type { NodeEntry } from './node-entry.ts'
import type { PodFacts, PodTerm } from '../pods/pod-facts.ts'
import type { Labels } from '../pods/selectors.ts'

/** How many pods of interest each node holds; nodes with none are absent. */
export type CountPerNode = ReadonlyMap<NodeEntry, number>

/** What is counted: `key` names the question, `pair` is a label every counted pod carries. */
export interface PodQuestion {
  readonly key: string
  readonly pair: string | undefined
  readonly matches: (facts: PodFacts) => boolean
}

interface Counter {
  readonly question: PodQuestion
  readonly perNode: Map<NodeEntry, number>
}

const keptCounters = 4096

/**
 * Counts assigned pods per node for selectors that pods ask about. A counter is filled when first
 * asked for and kept up to date afterwards. Counters that demand a label are found by it, so that
 * a pod only meets those which can concern it.
 */
export class MatchCounts {
  readonly #byKey = new Map<string, Counter>()
  readonly #byPair = new Map<string, Counter[]>()
  readonly #anywhere: Counter[] = []
  readonly #carriers = new LabelCarriers()

  /** The counts for a question; `assigned` serves to answer it the first time. */
  of(question: PodQuestion, assigned: Iterable<NodeEntry>): CountPerNode {
    const known = this.#byKey.get(question.key)
    if (known !== undefined) return known.perNode
    if (this.#byKey.size >= keptCounters) this.clear()
    const counter: Counter = { question, perNode: new Map() }
    if (question.pair === undefined) {
      for (const entry of assigned) {
        for (const facts of entry.pods.values()) count(counter, facts, entry, 1)
      }
    } else {
      for (const [facts, entry] of this.#carriers.of(question.pair, assigned)) count(counter, facts, entry, 1)
    }
    this.#byKey.set(question.key, counter)
    this.#listFor(question.pair).push(counter)
    return counter.perNode
  }

  change(facts: PodFacts, entry: NodeEntry, sign: 1 | -1): void {
    this.#carriers.change(facts, entry, sign)
    for (const counter of this.#anywhere) count(counter, facts, entry, sign)
    if (this.#byPair.size === 0) return
    for (const label in facts.labels) {
      const counters = this.#byPair.get(`${label}=${ownValue(facts.labels, label)}`)
      if (counters === undefined) continue
      for (const counter of counters) count(counter, facts, entry, sign)
    }
  }

  /** Forgets everything, for instance because namespace labels changed. */
  clear(): void {
    this.#byKey.clear()
    this.#byPair.clear()
    this.#anywhere.length = 0
  }

  #listFor(pair: string | undefined): Counter[] {
    if (pair === undefined) return this.#anywhere
    const list = this.#byPair.get(pair) ?? []
    this.#byPair.set(pair, list)
    return list
  }
}

/** Pods that carry a label value. */
type Carriers = Map<PodFacts, NodeEntry>

/**
 * Assigned pods by the value of a label, for labels that were asked for: a question about one value need not look
 * through the pods of all others.
 */
class LabelCarriers {
  readonly #byLabel = new Map<string, Map<string, Carriers>>()

  /** Pods that carry `pair` (`label=value`); `assigned` serves to index its label the first time. */
  of(pair: string, assigned: Iterable<NodeEntry>): Iterable<readonly [PodFacts, NodeEntry]> {
    // A label has no `=` in it.
    const at = pair.indexOf('=')
    const label = pair.slice(0, at)
    let byValue = this.#byLabel.get(label)
    if (byValue === undefined) {
      byValue = new Map<string, Carriers>()
      this.#byLabel.set(label, byValue)
      for (const entry of assigned) {
        for (const facts of entry.pods.values()) carry(byValue, label, facts, entry)
      }
    }
    return byValue.get(pair.slice(at + 1)) ?? []
  }

  change(facts: PodFacts, entry: NodeEntry, sign: 1 | -1): void {
    for (const [label, byValue] of this.#byLabel) {
      if (sign === 1) carry(byValue, label, facts, entry)
      else drop(byValue, label, facts)
    }
  }
}

function carry(byValue: Map<string, Carriers>, label: string, facts: PodFacts, entry: NodeEntry): void {
  const value = ownValue(facts.labels, label)
  if (value === undefined) return
  const carriers = byValue.get(value) ?? new Map<PodFacts, NodeEntry>()
  carriers.set(facts, entry)
  byValue.set(value, carriers)
}

function drop(byValue: Map<string, Carriers>, label: string, facts: PodFacts): void {
  const value = ownValue(facts.labels, label)
  const carriers = value === undefined ? undefined : byValue.get(value)
  if (value === undefined || carriers === undefined) return
  carriers.delete(facts)
  if (carriers.size === 0) byValue.delete(value)
}

function count(counter: Counter, facts: PodFacts, entry: NodeEntry, sign: 1 | -1): void {
  if (counter.question.matches(facts)) bump(counter.perNode, entry, sign)
}

function bump(perNode: Map<NodeEntry, number>, entry: NodeEntry, by: number): void {
  const value = (perNode.get(entry) ?? 0) + by
  if (value === 0) perNode.delete(entry)
  else perNode.set(entry, value)
}

/** A term that assigned pods carry, with the weight of its carriers per node. */
export interface CarriedTerm {
  readonly term: PodTerm
  readonly perNode: CountPerNode
}

/** Terms of assigned pods that incoming pods must be held against, found by the labels they select. */
export class CarriedTerms {
  readonly #byKey = new Map<string, { term: PodTerm; perNode: Map<NodeEntry, number> }>()
  readonly #byPair = new Map<string, Set<CarriedTerm>>()

  /** Adds `by` (the number, or the summed weight, of carriers) for a term on a node. */
  change(term: PodTerm, entry: NodeEntry, by: number): void {
    const key = `${term.topologyKey}\n${term.key}`
    const carried = this.#byKey.get(key) ?? { term, perNode: new Map<NodeEntry, number>() }
    const pair = term.labels.pair ?? ''
    const list = this.#byPair.get(pair) ?? new Set()
    bump(carried.perNode, entry, by)
    if (carried.perNode.size === 0) {
      this.#byKey.delete(key)
      list.delete(carried)
    } else {
      this.#byKey.set(key, carried)
      list.add(carried)
    }
    if (list.size === 0) this.#byPair.delete(pair)
    else this.#byPair.set(pair, list)
  }

  /** Terms that could select a pod with these labels. */
  *candidates(labels: Labels): Generator<CarriedTerm> {
    if (this.#byKey.size === 0) return
    yield* this.#byPair.get('') ?? []
    for (const label in labels) yield* this.#byPair.get(`${label}=${ownValue(labels, label)}`) ?? []
  }
}
