import type { CsiNode, Node, Taint } from '@tenon/api'
import type { PodFacts } from '../pods/pod-facts.ts'
import type { ResourceTable } from '../pods/resource-table.ts'
import type { Labels } from '../pods/selectors.ts'

/** A node with its assigned pods and what they use together. */
export class NodeEntry {
  readonly name: string
  /** Undefined if pods name a node that does not exist. */
  node: Node | undefined
  labels: Labels = {}
  /** NoSchedule and NoExecute taints. */
  hardTaints: readonly Taint[] = []
  /** PreferNoSchedule taints, which only affect scores. */
  softTaints: readonly Taint[] = []
  unschedulable = false
  allocatable: readonly number[] = []
  podsAllowed = 0
  readonly requested: number[] = []
  /** Of a node that does not exist yet; others are in the index of volumes. */
  csiNode: CsiNode | undefined
  /** Whether it does not exist yet, or has just started. */
  isNew = false
  scoredCpu = 0
  scoredMemory = 0
  readonly pods = new Map<string, PodFacts>()
  /** The number of pods with claims, as most nodes have none and need not be searched. */
  podsWithClaims = 0
  /** Host ports in use: the number of pods by `TCP/80`, then by IP. */
  readonly #ports = new Map<string, Map<string, number>>()

  constructor(name: string) {
    this.name = name
  }

  /** Updates the node. */
  set(node: Node | undefined, table: ResourceTable): void {
    this.node = node
    this.labels = node?.metadata.labels ?? {}
    const taints = node?.spec?.taints ?? []
    this.hardTaints = taints.filter((one) => one.effect !== 'PreferNoSchedule')
    this.softTaints = taints.filter((one) => one.effect === 'PreferNoSchedule')
    this.unschedulable = node?.spec?.unschedulable === true
    this.allocatable = table.totals(node?.status?.allocatable)
    this.podsAllowed = table.podCount(node?.status?.allocatable)
  }

  add(facts: PodFacts): void {
    this.pods.set(facts.uid, facts)
    this.#count(facts, 1)
  }

  remove(facts: PodFacts): void {
    this.pods.delete(facts.uid)
    this.#count(facts, -1)
  }

  /** Sorts the pods. The list must contain exactly the current ones. */
  arrange(pods: readonly PodFacts[]): void {
    this.pods.clear()
    for (const facts of pods) this.pods.set(facts.uid, facts)
  }

  /** Whether a pod's host ports are free; `0.0.0.0` conflicts with every address. */
  hasFreePorts(facts: PodFacts): boolean {
    return facts.hostPorts.every(({ ip, slot }) => {
      const taken = this.#ports.get(slot)
      if (taken === undefined || taken.size === 0) return true
      return ip !== '0.0.0.0' && !taken.has('0.0.0.0') && !taken.has(ip)
    })
  }

  #count(facts: PodFacts, sign: 1 | -1): void {
    for (const { slot, amount } of facts.requests) {
      this.requested[slot] = (this.requested[slot] ?? 0) + sign * amount
    }
    this.scoredCpu += sign * facts.scored.cpu
    this.scoredMemory += sign * facts.scored.memory
    if (facts.claims.length > 0) this.podsWithClaims += sign
    for (const { ip, slot } of facts.hostPorts) {
      const taken = this.#ports.get(slot) ?? new Map<string, number>()
      const count = (taken.get(ip) ?? 0) + sign
      if (count > 0) taken.set(ip, count)
      else taken.delete(ip)
      this.#ports.set(slot, taken)
    }
  }
}
