import { ownValue } from '@tenon/api'
import type { NodeEntry } from './node-entry.ts'
import type { PodFacts, PodTerm } from '../pods/pod-facts.ts'
import type { Labels } from '../pods/selectors.ts'

/** Number of matching pods per node; nodes without any are absent. */
export type CountPerNode = ReadonlyMap<NodeEntry, number>

/** Which pods are counted. `key` identifies the question; `pair` is a label that all counted pods have. */
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
 * Counts assigned pods per node and selector. A counter is built on first use and kept up to date from then on.
 * Counters with a required label are indexed by it, so that a pod only touches those that it may match.
 */
export class MatchCounts {
  readonly #byKey = new Map<string, Counter>()
  readonly #byPair = new Map<string, Counter[]>()
  readonly #anywhere: Counter[] = []
  readonly #carriers = new LabelCarriers()

  /** The counts for a question; `assigned` is only read on first use. */
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

  /** Drops all counters, for example because namespace labels changed. */
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

/** Pods with a label value. */
type PodsByNode = Map<PodFacts, NodeEntry>

/**
 * Assigned pods by label value, for labels that were asked for, so that a question about one value does not visit all
 * pods.
 */
class LabelCarriers {
  readonly #byLabel = new Map<string, Map<string, PodsByNode>>()

  /** Pods with the label `pair` (`label=value`); `assigned` is only read on first use of the label. */
  of(pair: string, assigned: Iterable<NodeEntry>): Iterable<readonly [PodFacts, NodeEntry]> {
    // Label keys contain no `=`.
    const at = pair.indexOf('=')
    const label = pair.slice(0, at)
    let byValue = this.#byLabel.get(label)
    if (byValue === undefined) {
      byValue = new Map<string, PodsByNode>()
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

function carry(byValue: Map<string, PodsByNode>, label: string, facts: PodFacts, entry: NodeEntry): void {
  const value = ownValue(facts.labels, label)
  if (value === undefined) return
  const carriers = byValue.get(value) ?? new Map<PodFacts, NodeEntry>()
  carriers.set(facts, entry)
  byValue.set(value, carriers)
}

function drop(byValue: Map<string, PodsByNode>, label: string, facts: PodFacts): void {
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

/** A term of assigned pods, with the summed weight of these pods per node. */
export interface CarriedTerm {
  readonly term: PodTerm
  readonly perNode: CountPerNode
}

/** Terms of assigned pods that concern incoming pods, indexed by the labels that they select. */
export class CarriedTerms {
  readonly #byKey = new Map<string, { term: PodTerm; perNode: Map<NodeEntry, number> }>()
  readonly #byPair = new Map<string, Set<CarriedTerm>>()

  /** Adds `by` (a number of pods, or their summed weight) to a term on a node. */
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

  /** Terms that may select a pod with these labels. */
  *candidates(labels: Labels): Generator<CarriedTerm> {
    if (this.#byKey.size === 0) return
    yield* this.#byPair.get('') ?? []
    for (const label in labels) yield* this.#byPair.get(`${label}=${ownValue(labels, label)}`) ?? []
  }
}
