/** Which pods the nodes that were asked for are meant for (planned-placement.md). */
import type { Node, Pod } from '@tenon/api'
import { kindOf } from '../pods/equivalence.ts'

/** A node that was asked for, and the pods that it is for. */
export interface PlannedNode {
  readonly groupId: string
  readonly pods: readonly Pod[]
}

/** What plans are held against. */
export interface SeenCluster {
  readonly nodes: readonly Node[]
  /** Group id by node name. */
  readonly groupOf: ReadonlyMap<string, string>
  /** UIDs of pods that have no node yet. */
  readonly waiting: ReadonlySet<string>
  readonly nowMs: number
}

interface Place {
  readonly groupId: string
  /** UIDs of the pods that still wait. */
  readonly pods: ReadonlySet<string>
  /** Whether it matters which of the new nodes they go to. */
  readonly matters: boolean
  /** Names of nodes that were there before: the place is none of them. */
  readonly before: ReadonlySet<string>
  readonly endsAtMs: number
  /** Name of the node once it is there. */
  readonly node: string | undefined
}

/** A pod and the node that it is planned for. */
export interface PlannedPod {
  readonly uid: string
  readonly node: string
}

/**
 * Plans end when the pod has a node or is gone, when the node goes, and when a node has had the time to come that it
 * may take. A pod has one plan: the latest.
 */
export class PodPlans {
  readonly #lifetimeMs: number
  #places: readonly Place[] = []
  /** Names of nodes that were some place, whether its pods have come or not. */
  readonly #taken = new Set<string>()
  /** The nomination that was written, by UID of the pod. */
  readonly #nominations = new Map<string, string>()

  /** @param lifetimeMs how long a node may take to come. */
  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs
  }

  /** @param before names of the nodes that are there. */
  add(nodes: readonly PlannedNode[], before: ReadonlySet<string>, nowMs: number): void {
    const kinds = new Set(nodes.flatMap(({ pods }) => pods.map(kindOf)))
    const matters = nodes.length > 1 && kinds.size > 1
    const endsAtMs = nowMs + this.#lifetimeMs
    const added = nodes.map(({ groupId, pods }): Place => {
      const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ''))
      return { groupId, pods: uids, matters, before, endsAtMs, node: undefined }
    })
    const planned = new Set(added.flatMap(({ pods }) => [...pods]))
    const kept = this.#places.map((place) => withPods(place, (uid) => !planned.has(uid)))
    this.#places = [...kept, ...added].filter(hasPods)
  }

  /** Whether a node that pods are planned for is still to come. */
  get awaitsNodes(): boolean {
    return this.#places.some(({ node }) => node === undefined)
  }

  /** Whether a node of this name may be one that pods are planned for and that was still to come. */
  mayBe(name: string): boolean {
    if (this.#taken.has(name)) return false
    return this.#places.some(({ node, before }) => node === undefined && !before.has(name))
  }

  /** Drops plans that have ended, and finds nodes that have come. */
  update(cluster: SeenCluster): void {
    const { nodes, waiting, nowMs } = cluster
    for (const uid of this.#nominations.keys()) if (!waiting.has(uid)) this.#nominations.delete(uid)
    if (this.#places.length === 0) return
    const names = new Set(nodes.map(({ metadata }) => metadata.name))
    this.#places = this.#places
      .filter(({ endsAtMs, node }) => nowMs < endsAtMs && (node === undefined || names.has(node)))
      .map((place) => withPods(place, (uid) => waiting.has(uid)))
      .filter(hasPods)
    for (const name of this.#taken) if (!names.has(name)) this.#taken.delete(name)
    if (this.awaitsNodes) this.#find(cluster)
    // Of later plans, these nodes are among those that were there before.
    if (this.#places.length === 0) this.#taken.clear()
  }

  #find({ nodes, groupOf }: SeenCluster): void {
    const free = nodes.toSorted(olderFirst).map(({ metadata }) => metadata.name)
    const byGroup = Map.groupBy(free, (name) => groupOf.get(name))
    this.#places = this.#places.map((place) => {
      if (place.node !== undefined) return place
      const isNew = (name: string) => !this.#taken.has(name) && !place.before.has(name)
      const node = byGroup.get(place.groupId)?.find(isNew)
      if (node === undefined) return place
      this.#taken.add(node)
      return { ...place, node }
    })
  }

  /**
   * Where each planned pod is to go, by UID.
   * @param nameOf of a node of this group that is still to come, counted from 0.
   * @param isThere whether a node is open, so that it is not among those that are to come.
   */
  places(
    nameOf: (groupId: string, index: number) => string,
    isThere: (node: string) => boolean,
  ): ReadonlyMap<string, string> {
    const awaited = new Map<string, number>()
    const found = new Map<string, string>()
    for (const { groupId, pods, node } of this.#places) {
      const index = awaited.get(groupId) ?? 0
      const isOpen = node !== undefined && isThere(node)
      if (!isOpen) awaited.set(groupId, index + 1)
      for (const uid of pods) found.set(uid, isOpen ? node : nameOf(groupId, index))
    }
    return found
  }

  /** Pods that should go to nodes that are there, where it matters which pod goes to which. */
  get wishes(): readonly PlannedPod[] {
    return this.#places.flatMap(({ node, pods, matters }) =>
      node === undefined || !matters ? [] : [...pods].map((uid) => ({ uid, node })),
    )
  }

  /** Notes that the scheduler is told of it. */
  nominate({ uid, node }: PlannedPod): void {
    this.#nominations.set(uid, node)
  }

  /** Whether the pod's nomination was written by this process: it makes no room there by preemption. */
  isOurs({ metadata, status }: Pod): boolean {
    const written = this.#nominations.get(metadata.uid ?? '')
    return written !== undefined && written === status?.nominatedNodeName
  }
}

function withPods(place: Place, keeps: (uid: string) => boolean): Place {
  const pods = [...place.pods].filter(keeps)
  return pods.length === place.pods.size ? place : { ...place, pods: new Set(pods) }
}

function hasPods({ pods }: Place): boolean {
  return pods.size > 0
}

function olderFirst({ metadata: a }: Node, { metadata: b }: Node): number {
  const [left, right] = [a, b].map(({ creationTimestamp, name }) => `${creationTimestamp ?? ''} ${name}`)
  return (left ?? '') < (right ?? '') ? -1 : 1
}

/** Gives the pods of new nodes to the groups that grow, in their order; a group grows by `delta` nodes. */
export function plannedNodes(
  podsByNode: readonly (readonly Pod[])[],
  increases: readonly { readonly groupId: string; readonly delta: number }[],
): readonly PlannedNode[] {
  const groups = increases.flatMap(({ groupId, delta }) => Array.from({ length: delta }, () => groupId))
  return podsByNode.flatMap((pods, index) => {
    const groupId = groups[index]
    return groupId === undefined ? [] : [{ groupId, pods }]
  })
}
