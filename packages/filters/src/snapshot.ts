/** A cluster that a simulation can change and revert. */
import type { CsiNode, Node, Pod, ResizedRequests, ResourceSlice } from '@tenon/api'
import { ClusterIndex } from './cluster/cluster-index.ts'
import { NodeEntry } from './cluster/node-entry.ts'
import type { DeviceIndex } from './devices/device-index.ts'
import { type ClusterView, PodCycle } from './rules/pod-cycle.ts'
import { type PodFacts, podFacts } from './pods/pod-facts.ts'
import { requestsBySlot } from './pods/pod-requests.ts'
import { ResourceTable } from './pods/resource-table.ts'
import { checkNode } from './rules/filters.ts'
import type { Rejection } from './rejection.ts'
import type { Labels } from './pods/selectors.ts'
import { SpreadDomains } from './rules/spread-domains.ts'
import type { VolumeIndex } from './volumes/volume-index.ts'

/** Cached facts of pods, kept from one snapshot to the next: each pod object is read once. */
export class PodReader {
  readonly table = new ResourceTable()
  readonly #facts = new WeakMap<Pod, PodFacts>()
  readonly #requestsOf: ReturnType<typeof requestsBySlot>

  /** @param resized how kube-scheduler counts pods that are resized in place. */
  constructor(resized?: ResizedRequests) {
    this.#requestsOf = requestsBySlot(this.table, resized)
  }

  factsOf(pod: Pod): PodFacts {
    let facts = this.#facts.get(pod)
    if (facts === undefined) {
      facts = podFacts(pod, this.table, this.#requestsOf)
      this.#facts.set(pod, facts)
    }
    return facts
  }
}

/** What a {@link Snapshot} needs besides nodes and pods. */
export interface SnapshotSurroundings {
  readonly reader: PodReader
  readonly volumes: VolumeIndex
  /** Labels of every namespace. */
  readonly namespaces: ReadonlyMap<string, Labels>
  /** Changed by the snapshot. If absent, pods with ResourceClaims are unschedulable. */
  readonly devices?: DeviceIndex
}

/** Objects that belong to a new node. */
export interface NodeParts {
  /** Absent = assumed to have every CSI driver. */
  readonly csiNode?: CsiNode
  /** Of devices that are local to the node. */
  readonly resourceSlices?: readonly ResourceSlice[]
}

/** A state that {@link Snapshot.revert} returns to. */
export type SnapshotMark = number

/** Nodes and pods for placing pods with the filters. Every change can be reverted. */
export class Snapshot {
  readonly #reader: PodReader
  readonly #view: ClusterView
  #cycles = new WeakMap<PodFacts, PodCycle>()
  readonly #undo: (() => void)[] = []
  #next = 0

  constructor({ reader, volumes, namespaces, devices }: SnapshotSurroundings) {
    this.#reader = reader
    const index = new ClusterIndex(reader.table)
    for (const [name, labels] of namespaces) index.setNamespace(name, labels)
    this.#view = { index, volumes, spreadDomains: new SpreadDomains(index), ...(devices && { devices }) }
  }

  /** Indexes of all resources in here. */
  get table(): ResourceTable {
    return this.#reader.table
  }

  /** All nodes, alternating between zones. */
  get nodes(): readonly NodeEntry[] {
    return this.#view.index.nodes()
  }

  node(name: string): NodeEntry | undefined {
    return this.#view.index.node(name)
  }

  factsOf(pod: Pod): PodFacts {
    return this.#reader.factsOf(pod)
  }

  /** The facts of a node, without adding it. */
  readNode(node: Node): NodeEntry {
    const entry = new NodeEntry(node.metadata.name)
    entry.set(node, this.#reader.table)
    return entry
  }

  /**
   * Adds a node, or replaces the one with this name; its pods stay.
   * @param parts of a node that does not exist yet, or has just started.
   */
  setNode(node: Node, parts?: NodeParts): NodeEntry {
    const { csiNode, resourceSlices = [] } = parts ?? {}
    const { name } = node.metadata
    const { index, devices } = this.#view
    const before = this.node(name)?.node
    this.#undo.push(() => {
      index.setNode(name, before)
      for (const slice of resourceSlices) devices?.removeSlice(slice)
    })
    for (const slice of resourceSlices) devices?.setSlice(slice)
    const entry = index.setNode(name, node)
    entry.isNew = parts !== undefined
    if (csiNode !== undefined) entry.csiNode = csiNode
    return entry
  }

  /** Removes a node and the pods on it. */
  removeNode(name: string): void {
    const entry = this.node(name)
    if (entry === undefined) return
    for (const { pod } of entry.pods.values()) this.release(pod)
    const before = entry.node
    this.#view.index.setNode(name, undefined)
    this.#undo.push(() => this.#view.index.setNode(name, before))
  }

  /** Counts a pod on a node, whether it fits or not, and no longer on its node before. */
  assign(pod: Pod, nodeName: string): void {
    const { index } = this.#view
    const facts = this.factsOf(pod)
    const before = index.assignedTo(facts.uid)
    this.#allocate(facts, nodeName)
    index.assign(facts, nodeName)
    this.#undo.push(() => {
      if (before === undefined) index.release(facts.uid)
      else index.assign(before.facts, before.entry.name)
    })
  }

  /** Takes the devices on the node that the pod's claims need, so that other pods get others. */
  #allocate(facts: PodFacts, nodeName: string): void {
    const { devices } = this.#view
    const entry = this.node(nodeName)
    if (devices === undefined || entry === undefined) return
    const cycle = this.#cycleOf(facts)
    if (!cycle.usesDevices) return
    const claims = cycle.devicesOn(entry)
    if ('reasons' in claims) return
    for (const { claim, allocation, mappings } of claims) {
      if (allocation === undefined) continue
      devices.setClaim({ ...claim, status: { ...claim.status, allocation } })
      this.#cycles = new WeakMap()
      this.#undo.push(() => {
        if (mappings === undefined) devices.setClaim(claim)
        else devices.removeClaim(claim)
        this.#cycles = new WeakMap()
      })
    }
  }

  release(pod: Pod): void {
    const { index } = this.#view
    const { uid } = this.factsOf(pod)
    const before = index.assignedTo(uid)
    if (before === undefined) return
    index.release(uid)
    this.#undo.push(() => index.assign(before.facts, before.entry.name))
  }

  /** Why the pod does not fit on the node; undefined = it fits. */
  check(pod: Pod, entry: NodeEntry): Rejection | undefined {
    const cycle = this.#cycleOf(this.factsOf(pod))
    return cycle.early ?? checkNode(cycle, entry)
  }

  /**
   * The first node on which the pod fits. Begins after the node that was found last, so that all nodes get their turn.
   * @param isAllowed excludes nodes.
   */
  find(pod: Pod, isAllowed: (entry: NodeEntry) => boolean = () => true): NodeEntry | undefined {
    const cycle = this.#cycleOf(this.factsOf(pod))
    if (cycle.early !== undefined) return undefined
    const { nodes } = this
    for (let seen = 0; seen < nodes.length; seen++) {
      const at = (this.#next + seen) % nodes.length
      const entry = nodes[at] as NodeEntry
      if (!isAllowed(entry) || checkNode(cycle, entry) !== undefined) continue
      this.#next = at + 1
      return entry
    }
    return undefined
  }

  mark(): SnapshotMark {
    return this.#undo.length
  }

  /** Reverts every change since the mark. */
  revert(mark: SnapshotMark): void {
    while (this.#undo.length > mark) this.#undo.pop()?.()
  }

  #cycleOf(facts: PodFacts): PodCycle {
    let cycle = this.#cycles.get(facts)
    if (cycle === undefined) {
      cycle = new PodCycle(facts, this.#view)
      this.#cycles.set(facts, cycle)
    }
    return cycle
  }
}
