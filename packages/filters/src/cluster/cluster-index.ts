import type { Node } from '@tenon/api'
import { CarriedTerms, type CountPerNode, MatchCounts, type PodQuestion } from './match-counts.ts'
import { NodeEntry } from './node-entry.ts'
import type { PodFacts } from '../pods/pod-facts.ts'
import type { ResourceTable } from '../pods/resource-table.ts'
import type { Labels } from '../pods/selectors.ts'

const zoneLabel = 'topology.kubernetes.io/zone'
const noLabels: Labels = {}

/**
 * Nodes and the pods assigned to them, with running totals. Everything changes through `assign`, `release` and
 * `setNode`, so that a trial (preemption, nominated pods) can be undone.
 */
export class ClusterIndex {
  readonly table: ResourceTable
  /** Required anti-affinity terms of assigned pods. */
  readonly antiAffinity = new CarriedTerms()
  /** Terms of assigned pods that give a score to incoming pods, with weights. */
  readonly attraction = new CarriedTerms()
  readonly #entries = new Map<string, NodeEntry>()
  readonly #assigned = new Map<string, { readonly facts: PodFacts; readonly entry: NodeEntry }>()
  readonly #counts = new MatchCounts()
  readonly #namespaces = new Map<string, Labels>()
  readonly #claimUsers = new Map<string, Set<string>>()
  #order: readonly NodeEntry[] | undefined
  #version = 0
  #nodeVersion = 0

  constructor(table: ResourceTable) {
    this.table = table
  }

  /** Changes whenever the result for some pod may change. */
  get version(): number {
    return this.#version
  }

  /** Changes whenever a node is added, removed or changed. */
  get nodeVersion(): number {
    return this.#nodeVersion
  }

  /** Reports a change outside this index (volumes, nominations). */
  touch(): void {
    this.#version++
  }

  /** Existing nodes, alternating between zones, so that any sample of them spans all zones. */
  nodes(): readonly NodeEntry[] {
    this.#order ??= interleaved([...this.#entries.values()].filter((one) => one.node !== undefined))
    return this.#order
  }

  node(name: string): NodeEntry | undefined {
    const entry = this.#entries.get(name)
    return entry?.node === undefined ? undefined : entry
  }

  /** Adds, replaces or (with `undefined`) removes a node; its pods stay counted. */
  setNode(name: string, node: Node | undefined): NodeEntry {
    const entry = this.#entry(name)
    const known = entry.node
    entry.set(node, this.table)
    if (node === undefined && entry.pods.size === 0) this.#entries.delete(name)
    if ((known === undefined) !== (node === undefined) || zoneOf(known) !== zoneOf(node)) {
      this.#order = undefined
    }
    this.#version++
    this.#nodeVersion++
    return entry
  }

  /** The node on which a pod is counted. */
  assignedTo(uid: string): { readonly facts: PodFacts; readonly entry: NodeEntry } | undefined {
    return this.#assigned.get(uid)
  }

  /** Counts a pod on a node instead of where it was counted before. */
  assign(facts: PodFacts, nodeName: string): void {
    this.release(facts.uid)
    const entry = this.#entry(nodeName)
    entry.add(facts)
    this.#assigned.set(facts.uid, { facts, entry })
    this.#account(facts, entry, 1)
  }

  release(uid: string): void {
    const known = this.#assigned.get(uid)
    if (known === undefined) return
    this.#assigned.delete(uid)
    known.entry.remove(known.facts)
    this.#account(known.facts, known.entry, -1)
    if (known.entry.node === undefined && known.entry.pods.size === 0) {
      this.#entries.delete(known.entry.name)
    }
  }

  /** Number of matching pods per node. */
  counts(question: PodQuestion): CountPerNode {
    return this.#counts.of(question, this.#entries.values())
  }

  namespaceLabels = (namespace: string): Labels => this.#namespaces.get(namespace) ?? noLabels

  setNamespace(namespace: string, labels: Labels | undefined): void {
    if (labels === undefined) this.#namespaces.delete(namespace)
    else this.#namespaces.set(namespace, labels)
    this.#counts.clear()
    this.#version++
  }

  /** UIDs of the assigned pods that mount a PersistentVolumeClaim (`namespace/name`). */
  claimUsers(claim: string): ReadonlySet<string> | undefined {
    return this.#claimUsers.get(claim)
  }

  #entry(name: string): NodeEntry {
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      entry = new NodeEntry(name)
      this.#entries.set(name, entry)
    }
    return entry
  }

  #account(facts: PodFacts, entry: NodeEntry, sign: 1 | -1): void {
    this.#version++
    this.#counts.change(facts, entry, sign)
    for (const term of facts.antiAffinity) this.antiAffinity.change(term, entry, sign)
    // Required affinity of running pods also gives a score, with weight 1.
    for (const term of facts.affinity) this.attraction.change(term, entry, sign)
    for (const { weight, term } of facts.preferred) this.attraction.change(term, entry, sign * weight)
    for (const claim of facts.claims) {
      const key = `${facts.namespace}/${claim.name}`
      const users = this.#claimUsers.get(key) ?? new Set()
      if (sign === 1) users.add(facts.uid)
      else users.delete(facts.uid)
      if (users.size === 0) this.#claimUsers.delete(key)
      else this.#claimUsers.set(key, users)
    }
  }
}

function zoneOf(node: Node | undefined): string | undefined {
  return node?.metadata.labels?.[zoneLabel]
}

function interleaved(entries: readonly NodeEntry[]): NodeEntry[] {
  const zones = new Map<string, NodeEntry[]>()
  for (const entry of entries) {
    const zone = zoneOf(entry.node) ?? ''
    const list = zones.get(zone) ?? []
    list.push(entry)
    zones.set(zone, list)
  }
  const longest = Math.max(0, ...[...zones.values()].map((list) => list.length))
  const order: NodeEntry[] = []
  for (let turn = 0; turn < longest; turn++) {
    for (const list of zones.values()) {
      const entry = list[turn]
      if (entry !== undefined) order.push(entry)
    }
  }
  return order
}
