import { type Node, ownValue, type Pod } from '@tenon/api'
import type { ClusterIndex } from '../cluster/cluster-index.ts'
import type { DeviceIndex } from '../devices/device-index.ts'
import { type AllocatedClaim, type DevicePlan, devicePlan, devicesOn } from '../devices/device-plan.ts'
import type { CountPerNode, PodQuestion } from '../cluster/match-counts.ts'
import type { NodeEntry } from '../cluster/node-entry.ts'
import { type PodFacts, type PodTerm, type SpreadConstraint, termSelects } from '../pods/pod-facts.ts'
import type { Rejection } from '../rejection.ts'
import type { SpreadDomains } from './spread-domains.ts'
import type { VolumeIndex } from '../volumes/volume-index.ts'
import { type VolumePlan, volumePlan } from '../volumes/volume-plan.ts'

/** Number of pods per value of a topology key. */
export type DomainCounts = ReadonlyMap<string, number>

/** A term of the incoming pod, with the pods that it selects per domain. */
export interface TermState {
  readonly topologyKey: string
  readonly counts: DomainCounts
}

/** A DoNotSchedule constraint with its counts; `least` is the global minimum. */
export interface SpreadState {
  readonly constraint: SpreadConstraint
  readonly counts: DomainCounts
  readonly least: number
  /** 1 if the constraint selects the pod itself. */
  readonly self: 0 | 1
}

/** The rules about other pods for one pod, at one version of the index. */
interface PodRules {
  readonly affinity: readonly TermState[]
  /** No pod matches the affinity terms, but the pod itself does, so it may be the first. */
  readonly mayBeFirst: boolean
  readonly antiAffinity: readonly TermState[]
  /** Domains that anti-affinity of assigned pods excludes. */
  readonly closed: readonly TermState[]
  readonly spread: readonly SpreadState[]
}

/** A filter in addition to those of Kubernetes: why it rejects a node, or undefined. */
export type ExtraFilter = (pod: Pod, node: Node) => string | undefined

/** The cluster state that a cycle reads. */
export interface ClusterView {
  readonly index: ClusterIndex
  readonly volumes: VolumeIndex
  readonly spreadDomains: SpreadDomains
  /** If absent, pods with ResourceClaims are unschedulable. */
  readonly devices?: DeviceIndex
  readonly extraFilter?: ExtraFilter
}

/** One attempt to place one pod. Computes once what is the same for all nodes. */
export class PodCycle<View extends ClusterView = ClusterView> {
  readonly facts: PodFacts
  readonly view: View
  readonly volumePlan: VolumePlan
  readonly devicePlan: DevicePlan
  /** Set if the pod can run on no node. */
  readonly early: Rejection | undefined
  #rules: PodRules | undefined
  #version = -1

  constructor(facts: PodFacts, view: View) {
    this.facts = facts
    this.view = view
    this.volumePlan = volumePlan(facts, view.volumes)
    this.devicePlan = devicePlan(facts, view.devices)
    this.early = this.devicePlan.rejection ?? this.volumePlan.rejection
  }

  /** Whether the pod has ResourceClaims, or extended resources that devices may serve. */
  get usesDevices(): boolean {
    const { allocated, waiting, extended } = this.devicePlan
    return allocated.length + waiting.length + extended.length > 0
  }

  /** Why the node cannot provide the pod's ResourceClaims, or their allocations there. */
  devicesOn(entry: NodeEntry): readonly AllocatedClaim[] | Rejection {
    const { devices } = this.view
    return devices === undefined ? [] : devicesOn(this.facts, this.devicePlan, entry, devices)
  }

  /** The current rules about other pods; recomputed after pods were added or removed, also in a trial. */
  rules(): PodRules {
    const index = this.view.index
    if (this.#rules === undefined || this.#version !== index.version) {
      this.#rules = this.#compute()
      this.#version = index.version
    }
    return this.#rules
  }

  #compute(): PodRules {
    const { facts, view } = this
    const closed = closedDomains(facts, view.index)
    const affinity = this.#affinity()
    const noMatch = affinity.every((state) => state.counts.size === 0)
    return {
      affinity,
      mayBeFirst: noMatch && facts.affinity.every((term) => this.#selects(term, facts)),
      antiAffinity: facts.antiAffinity.map((term) => this.#termState(term, this.#question(term))),
      closed,
      spread: facts.hardSpread.map((constraint) => this.#spreadState(constraint)),
    }
  }

  /** A pod counts for affinity only if all terms select it. */
  #affinity(): TermState[] {
    const terms = this.facts.affinity
    if (terms.length === 0) return []
    const question: PodQuestion = {
      key: `all:${terms.map((term) => term.key).join('\n')}`,
      pair: terms.find((term) => term.labels.pair !== undefined)?.labels.pair,
      matches: (other) => terms.every((term) => this.#selects(term, other)),
    }
    return terms.map((term) => this.#termState(term, question))
  }

  #question(term: PodTerm): PodQuestion {
    return {
      key: `all:${term.key}`,
      pair: term.labels.pair,
      matches: (other) => this.#selects(term, other),
    }
  }

  #termState(term: PodTerm, question: PodQuestion): TermState {
    const counts = perDomain(this.view.index.counts(question), term.topologyKey)
    return { topologyKey: term.topologyKey, counts }
  }

  #selects(term: PodTerm, other: PodFacts): boolean {
    return termSelects(term, other, this.view.index.namespaceLabels)
  }

  #spreadState(constraint: SpreadConstraint): SpreadState {
    const { facts, view } = this
    const keys = facts.hardSpread.map((one) => one.topologyKey)
    const eligible = view.spreadDomains.of(facts, constraint, keys)
    const pods = view.index.counts(spreadQuestion(facts.namespace, constraint))
    const counts = perDomain(pods, constraint.topologyKey, eligible.nodes)
    let least = eligible.domains.size < constraint.minDomains ? 0 : Number.POSITIVE_INFINITY
    for (const domain of eligible.domains) least = Math.min(least, counts.get(domain) ?? 0)
    return {
      constraint,
      counts,
      least: Number.isFinite(least) ? least : 0,
      self: constraint.selector.matches(facts.labels) ? 1 : 0,
    }
  }
}

/**
 * The pods that a spread constraint counts: selected pods of the namespace that are not terminating. Kubernetes counts
 * none for an empty selector.
 */
export function spreadQuestion(namespace: string, constraint: SpreadConstraint): PodQuestion {
  const selector = constraint.selector
  return {
    key: `spread:${namespace}:${selector.key}`,
    pair: selector.pair,
    matches: (other) =>
      !selector.isEmpty &&
      other.namespace === namespace &&
      !other.terminating &&
      selector.matches(other.labels),
  }
}

/** Sums pods per domain, over all nodes or over eligible ones. */
export function perDomain(
  counts: CountPerNode,
  topologyKey: string,
  eligible?: ReadonlySet<NodeEntry>,
): Map<string, number> {
  const domains = new Map<string, number>()
  for (const [entry, count] of counts) {
    const domain = ownValue(entry.labels, topologyKey)
    if (domain === undefined || (eligible !== undefined && !eligible.has(entry))) continue
    domains.set(domain, (domains.get(domain) ?? 0) + count)
  }
  return domains
}

function closedDomains(facts: PodFacts, index: ClusterIndex): TermState[] {
  const closed: TermState[] = []
  for (const { term, perNode } of index.antiAffinity.candidates(facts.labels)) {
    if (!termSelects(term, facts, index.namespaceLabels)) continue
    closed.push({ topologyKey: term.topologyKey, counts: perDomain(perNode, term.topologyKey) })
  }
  return closed
}
