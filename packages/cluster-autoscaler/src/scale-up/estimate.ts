/** How many nodes of a group hold which pods (cluster-autoscaler.md 4.4). */
import type { Pod } from '@tenon/api'
import { cpuSlot, memorySlot, type NodeEntry, type PodFacts, type Snapshot } from '@tenon/filters'
import type { NodeTemplate } from '../model.ts'
import type { PodGroup } from '../pods/equivalence.ts'
import { nodeLike } from '../templates/node-templates.ts'

export interface Estimate {
  /** New nodes with at least one of the pods. */
  readonly nodeCount: number
  readonly pods: readonly Pod[]
  /** The pods of each new node, without pods that fit on existing nodes. */
  readonly podsByNode: readonly (readonly Pod[])[]
}

export interface EstimateQuestion {
  readonly groupId: string
  readonly template: NodeTemplate
  /** Pod groups that fit on the template. */
  readonly groups: readonly PodGroup[]
  /** Maximum nodes to add. */
  readonly permits: number
  readonly snapshot: Snapshot
  /** Returns true when the time for this group is over; the result so far counts. */
  readonly isOver: () => boolean
  /** Estimate the last pod group from one node: `--fastpath-binpacking-enabled`. */
  readonly extrapolates: boolean
}

const hostname = 'kubernetes.io/hostname'

/** Packs pods on new nodes of the group, and reverts the snapshot. */
export function* estimate(question: EstimateQuestion): Generator<void, Estimate> {
  const mark = question.snapshot.mark()
  try {
    return yield* new Packing(question).run()
  } finally {
    question.snapshot.revert(mark)
  }
}

class Packing {
  readonly #question: EstimateQuestion
  readonly #snapshot: Snapshot
  readonly #added: NodeEntry[] = []
  readonly #isNew = new Set<NodeEntry>()
  readonly #used = new Map<NodeEntry, Pod[]>()
  readonly #placed: Pod[] = []
  /** Pods of extrapolated nodes. */
  #extrapolated: readonly (readonly Pod[])[] = []
  #next = 0

  constructor(question: EstimateQuestion) {
    this.#question = question
    this.#snapshot = question.snapshot
  }

  *run(): Generator<void, Estimate> {
    const { groups, template, isOver, extrapolates } = this.#question
    const ordered = groups.toSorted((a, b) => this.#scoreOf(b, template) - this.#scoreOf(a, template))
    for (const [index, group] of ordered.entries()) {
      if (isOver()) break
      const isLast = index === ordered.length - 1
      if (extrapolates && isLast && isUniform(this.#snapshot.factsOf(group.exemplar)))
        yield* this.#extrapolate(group)
      else yield* this.#pack(group.pods)
    }
    const podsByNode = [...this.#used.values(), ...this.#extrapolated]
    return { nodeCount: podsByNode.length, pods: this.#placed, podsByNode }
  }

  /** The share of a node that a pod of the group needs; the largest are packed first. */
  #scoreOf({ exemplar }: PodGroup, { node }: NodeTemplate): number {
    const { cpu, memory } = this.#snapshot.factsOf(exemplar)
    const entry = this.#snapshot.readNode(node)
    const share = (amount: number, of: number | undefined) => (of === undefined || of === 0 ? 0 : amount / of)
    return share(cpu, entry.allocatable[cpuSlot]) + share(memory, entry.allocatable[memorySlot])
  }

  *#pack(pods: readonly Pod[]): Generator<void, void> {
    let index = 0
    for (; index < pods.length; index++) {
      const entry = this.#addedThatTakes(pods[index] as Pod)
      if (entry === undefined) break
      this.#put(pods[index] as Pod, entry)
      yield
    }
    for (; index < pods.length; index++) {
      if (this.#question.isOver()) return
      if (!this.#placeOnLast(pods[index] as Pod)) return
      yield
    }
  }

  #addedThatTakes(pod: Pod): NodeEntry | undefined {
    const count = this.#added.length
    for (let seen = 0; seen < count; seen++) {
      const at = (this.#next + seen) % count
      const entry = this.#added[at] as NodeEntry
      if (this.#snapshot.check(pod, entry) !== undefined) continue
      // The next pod is equal, so earlier nodes are full for it as well.
      this.#next = at
      return entry
    }
    return undefined
  }

  /** @returns false if no further pod of this group will fit. */
  #placeOnLast(pod: Pod): boolean {
    const last = this.#added.at(-1)
    if (last !== undefined) {
      const rejection = this.#snapshot.check(pod, last)
      if (rejection === undefined) return this.#put(pod, last)
      const isSpread = this.#snapshot
        .factsOf(pod)
        .hardSpread.some(({ topologyKey }) => topologyKey === hostname)
      if (isSpread && rejection.filter === 'PodTopologySpread') {
        const other = this.#snapshot.find(pod, (entry) => !entry.unschedulable)
        if (other !== undefined) return this.#put(pod, other)
      }
      if (!this.#used.has(last)) return false
    }
    const node = this.#add()
    return node !== undefined && this.#snapshot.check(pod, node) === undefined && this.#put(pod, node)
  }

  #put(pod: Pod, entry: NodeEntry): true {
    this.#snapshot.assign(pod, entry.name)
    this.#placed.push(pod)
    // The pod may fit on an existing node, which does not count as new.
    if (!this.#isNew.has(entry)) return true
    const pods = this.#used.get(entry)
    if (pods === undefined) this.#used.set(entry, [pod])
    else pods.push(pod)
    return true
  }

  #add(): NodeEntry | undefined {
    const { groupId, template, permits } = this.#question
    if (this.#added.length + this.#extrapolated.length >= permits) return undefined
    const name = `new-node-${this.#added.length}-of-${groupId}`
    const { node, pods, ...parts } = nodeLike(template, name, false)
    const entry = this.#snapshot.setNode(node, parts)
    for (const pod of pods) this.#snapshot.assign(pod, name)
    this.#added.push(entry)
    this.#isNew.add(entry)
    return entry
  }

  /** Packs one more node, and assumes that all others hold as many pods. */
  *#extrapolate({ pods }: PodGroup): Generator<void, void> {
    let index = 0
    for (; index < pods.length; index++) {
      const entry = this.#addedThatTakes(pods[index] as Pod)
      if (entry === undefined) break
      this.#put(pods[index] as Pod, entry)
      yield
    }
    const left = pods.slice(index)
    const node = left.length === 0 ? undefined : this.#add()
    if (node === undefined) return
    let perNode = 0
    while (perNode < left.length && this.#snapshot.check(left[perNode] as Pod, node) === undefined) {
      this.#put(left[perNode] as Pod, node)
      perNode++
      yield
    }
    if (perNode === 0) return
    const more = Math.ceil((left.length - perNode) / perNode)
    const counted = Math.min(more, this.#question.permits - this.#added.length)
    this.#extrapolated = Array.from({ length: counted }, (_, at) =>
      left.slice(perNode * (at + 1), perNode * (at + 2)),
    )
    this.#placed.push(...this.#extrapolated.flat())
  }
}

/** Whether every node holds as many pods of this group as the first. */
function isUniform({ hardSpread, antiAffinity, affinity }: PodFacts): boolean {
  return (
    hardSpread.length === 0 &&
    affinity.length === 0 &&
    antiAffinity.every(({ topologyKey }) => topologyKey === hostname)
  )
}
