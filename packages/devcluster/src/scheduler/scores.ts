import { meetsNodeSelectorTerm, ownValue, type ScoredBalance, tolerates } from '@tenon/api'
import {
  cpuSlot,
  memorySlot,
  type NodeEntry,
  perDomain,
  type PodCycle,
  type PodFacts,
  type SpreadConstraint,
  spreadQuestion,
  termSelects,
} from '@tenon/filters'
import type { DefaultSpread } from './filters/default-spread.ts'

const greatest = 100
const hostnameLabel = 'kubernetes.io/hostname'

/** Kubernetes' default weights. */
const weights = { taints: 3, nodeAffinity: 2, podAffinity: 2, spread: 2, resources: 1, balance: 1 } as const

/** The score of each feasible node, by position. Rules with equal scores for all nodes are skipped. */
export function scoreNodes(
  cycle: PodCycle,
  entries: readonly NodeEntry[],
  defaultSpread: DefaultSpread,
  balance: ScoredBalance,
): Float64Array {
  const scores = resourceScores(cycle.facts, entries, balance)
  addAll(scores, weights.taints, taintScores(cycle.facts, entries))
  addAll(scores, weights.nodeAffinity, nodeAffinityScores(cycle.facts, entries))
  addAll(scores, weights.podAffinity, podAffinityScores(cycle, entries))
  addAll(scores, weights.spread, spreadScores(cycle, entries, defaultSpread))
  return scores
}

function addAll(scores: Float64Array, weight: number, more: readonly number[] | undefined): void {
  if (more === undefined) return
  for (let index = 0; index < scores.length; index++) {
    scores[index] = (scores[index] as number) + weight * (more[index] as number)
  }
}

/**
 * LeastAllocated (free share after the pod; containers without requests count a default) plus BalancedAllocation (CPU
 * and memory used evenly, by real requests). The innermost loop of `bench/scheduler.ts`.
 */
function resourceScores(
  facts: PodFacts,
  entries: readonly NodeEntry[],
  balance: ScoredBalance,
): Float64Array {
  const scores = new Float64Array(entries.length)
  const balances = facts.cpu > 0 || facts.memory > 0
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as NodeEntry
    const cpu = entry.allocatable[cpuSlot] ?? 0
    const memory = entry.allocatable[memorySlot] ?? 0
    const freeCpu = freeShare(cpu, entry.scoredCpu + facts.scored.cpu)
    const freeMemory = freeShare(memory, entry.scoredMemory + facts.scored.memory)
    const counted = (cpu > 0 ? 1 : 0) + (memory > 0 ? 1 : 0)
    const least = counted === 0 ? 0 : Math.floor((freeCpu + freeMemory) / counted)
    let score = weights.resources * least
    if (balances && counted === 2) {
      const usedCpu = entry.requested[cpuSlot] ?? 0
      const usedMemory = entry.requested[memorySlot] ?? 0
      const after = evenness((usedCpu + facts.cpu) / cpu, (usedMemory + facts.memory) / memory)
      const change = after - evenness(usedCpu / cpu, usedMemory / memory)
      const half = greatest / 2
      score += weights.balance * (balance === 'use' ? after : half + Math.trunc((half + change) / 2))
    }
    scores[index] = score
  }
  return scores
}

/** 100 if equal shares of CPU and memory are used. */
function evenness(cpuShare: number, memoryShare: number): number {
  const distance = Math.abs(Math.min(1, cpuShare) - Math.min(1, memoryShare))
  return Math.floor((1 - distance / 2) * greatest)
}

function freeShare(allocatable: number, used: number): number {
  return allocatable === 0 || used > allocatable
    ? 0
    : Math.floor(((allocatable - used) * greatest) / allocatable)
}

/** Fewer untolerated PreferNoSchedule taints are better. */
function taintScores(facts: PodFacts, entries: readonly NodeEntry[]): number[] | undefined {
  if (entries.every((entry) => entry.softTaints.length === 0)) return undefined
  const counts = entries.map(
    (entry) =>
      entry.softTaints.filter((taint) => !facts.tolerations.some((one) => tolerates(one, taint))).length,
  )
  const most = Math.max(...counts)
  return counts.map((count) => (most === 0 ? greatest : greatest - Math.floor((greatest * count) / most)))
}

/** Weights of preferred node affinity terms that the node matches, relative to the best node. */
function nodeAffinityScores(facts: PodFacts, entries: readonly NodeEntry[]): number[] | undefined {
  const preferred = facts.pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution
  if (preferred === undefined || preferred.length === 0) return undefined
  const sums = entries.map((entry) => {
    let sum = 0
    for (const { weight, preference } of preferred) {
      if (meetsNodeSelectorTerm(preference, entry.name, entry.labels)) sum += weight
    }
    return sum
  })
  const most = Math.max(...sums)
  return most === 0 ? undefined : sums.map((sum) => Math.floor((greatest * sum) / most))
}

/** Preferred pod affinity terms in both directions, per domain, scaled to 0 to 100. */
function podAffinityScores(cycle: PodCycle, entries: readonly NodeEntry[]): number[] | undefined {
  const perKey = podAffinityWeights(cycle)
  if (perKey.size === 0) return undefined
  const sums = entries.map((entry) => {
    let sum = 0
    for (const [key, domains] of perKey) {
      const domain = ownValue(entry.labels, key)
      if (domain !== undefined) sum += domains.get(domain) ?? 0
    }
    return sum
  })
  const least = Math.min(...sums)
  const span = Math.max(...sums) - least
  return span === 0 ? undefined : sums.map((sum) => Math.floor((greatest * (sum - least)) / span))
}

/** Summed weights by topology key and domain. */
function podAffinityWeights(cycle: PodCycle): Map<string, Map<string, number>> {
  const { facts, view } = cycle
  const { index } = view
  const perKey = new Map<string, Map<string, number>>()
  const add = (topologyKey: string, domains: ReadonlyMap<string, number>, weight: number): void => {
    const sums = perKey.get(topologyKey) ?? new Map<string, number>()
    perKey.set(topologyKey, sums)
    for (const [domain, count] of domains) sums.set(domain, (sums.get(domain) ?? 0) + weight * count)
  }
  for (const { weight, term } of facts.preferred) {
    const matches = (other: PodFacts): boolean => termSelects(term, other, index.namespaceLabels)
    const counts = index.counts({ key: `all:${term.key}`, pair: term.labels.pair, matches })
    add(term.topologyKey, perDomain(counts, term.topologyKey), weight)
  }
  for (const { term, perNode } of index.attraction.candidates(facts.labels)) {
    if (!termSelects(term, facts, index.namespaceLabels)) continue
    add(term.topologyKey, perDomain(perNode, term.topologyKey), 1)
  }
  return perKey
}

/** ScheduleAnyway constraints, or the default ones: domains with fewer matching pods are better. */
function spreadScores(
  cycle: PodCycle,
  entries: readonly NodeEntry[],
  defaultSpread: DefaultSpread,
): number[] | undefined {
  const { facts } = cycle
  const own = facts.softSpread
  const constraints = own.length > 0 ? own : defaultSpread.of(facts)
  if (constraints.length === 0) return undefined
  // Nodes without a topology key of the pod's own constraints score 0; default constraints do not need it.
  const keys = own.map((one) => one.topologyKey)
  const counted = entries.filter((entry) => keys.every((key) => ownValue(entry.labels, key) !== undefined))
  const sums = new Map<NodeEntry, number>(counted.map((entry) => [entry, 0]))
  for (const constraint of constraints) addSpread(cycle, constraint, keys, sums)
  const values = [...sums.values()].map(Math.round)
  const least = Math.min(...values)
  const most = Math.max(...values)
  return entries.map((entry) => {
    const sum = sums.get(entry)
    if (sum === undefined) return 0
    return most === 0 ? greatest : Math.floor((greatest * (most + least - Math.round(sum))) / most)
  })
}

/**
 * Adds the raw score of one constraint: matching pods in the node's domain, weighted by the number of domains.
 */
function addSpread(
  cycle: PodCycle,
  constraint: SpreadConstraint,
  keys: readonly string[],
  sums: Map<NodeEntry, number>,
): void {
  const { facts, view } = cycle
  const pods = view.index.counts(spreadQuestion(facts.namespace, constraint))
  const key = constraint.topologyKey
  const domains =
    key === hostnameLabel
      ? undefined
      : perDomain(pods, key, view.spreadDomains.of(facts, constraint, keys).nodes)
  const weight = Math.log(domainCount(key, sums) + 2)
  for (const [entry, sum] of sums) {
    const domain = ownValue(entry.labels, key)
    if (domain === undefined) continue
    const count = domains === undefined ? (pods.get(entry) ?? 0) : (domains.get(domain) ?? 0)
    sums.set(entry, sum + count * weight + (constraint.maxSkew - 1))
  }
}

/** The number of domains of the feasible nodes; every node counts as its own host. */
function domainCount(key: string, sums: ReadonlyMap<NodeEntry, number>): number {
  if (key === hostnameLabel) return sums.size
  const domains = new Set<string>()
  for (const entry of sums.keys()) {
    const domain = ownValue(entry.labels, key)
    if (domain !== undefined) domains.add(domain)
  }
  return domains.size
}
