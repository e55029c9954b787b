/** Which pods the requested nodes are for (planned-placement.md). */
import type { Node, Pod } from '@tenon/api'
import { kindOf } from '../pods/equivalence.ts'

/** A requested node with its pods. */
export interface PlannedNode {
  readonly groupId: string
  readonly pods: readonly Pod[]
}

/** What plans are compared with. */
export interface SeenCluster {
  readonly nodes: readonly Node[]
  /** Group id by node name. */
  readonly groupOf: ReadonlyMap<string, string>
  /** UIDs of pods without a node. */
  readonly waiting: ReadonlySet<string>
  readonly nowMs: number
}

interface Place {
  readonly groupId: string
  /** UIDs of its pods that are still pending. */
  readonly pods: ReadonlySet<string>
  /** Whether it matters which new node the pods go to. */
  readonly matters: boolean
  /** Names of nodes that existed before, so that they are not this node. */
  readonly before: ReadonlySet<string>
  readonly endsAtMs: number
  /** Name of the node once it exists. */
  readonly node: string | undefined
}

/** A pod and its planned node. */
export interface PlannedPod {
  readonly uid: string
  readonly node: string
}

/**
 * A plan ends when the pod is bound or gone, when the node is gone, or when the node does not appear in time. A pod
 * only has its latest plan.
 */
export class PodPlans {
  readonly #lifetimeMs: (groupId: string) => number
  #places: readonly Place[] = []
  /** Names of nodes that were assigned to plans, even if these have ended. */
  readonly #taken = new Set<string>()
  /** The nomination that we wrote, by UID of the pod. */
  readonly #nominations = new Map<string, string>()

  /** @param lifetimeMs how long a node of a group may take to appear. */
  constructor(lifetimeMs: (groupId: string) => number) {
    this.#lifetimeMs = lifetimeMs
  }

  /** @param before names of existing nodes. */
  add(nodes: readonly PlannedNode[], before: ReadonlySet<string>, nowMs: number): void {
    const kinds = new Set(nodes.flatMap(({ pods }) => pods.map(kindOf)))
    const matters = nodes.length > 1 && kinds.size > 1
    const added = nodes.map(({ groupId, pods }): Place => {
      const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ''))
      const endsAtMs = nowMs + this.#lifetimeMs(groupId)
      return { groupId, pods: uids, matters, before, endsAtMs, node: undefined }
    })
    const planned = new Set(added.flatMap(({ pods }) => [...pods]))
    const kept = this.#places.map((place) => withPods(place, (uid) => !planned.has(uid)))
    this.#places = [...kept, ...added].filter(hasPods)
  }

  /** Whether some planned node does not exist yet. */
  get awaitsNodes(): boolean {
    return this.#places.some(({ node }) => node === undefined)
  }

  /** Whether a node of this name may be a planned one that did not exist yet. */
  mayBe(name: string): boolean {
    if (this.#taken.has(name)) return false
    return this.#places.some(({ node, before }) => node === undefined && !before.has(name))
  }

  /** Drops plans that have ended, and assigns new nodes. */
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
    // For later plans, these nodes are in `before`.
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
   * The node of each planned pod, by UID.
   * @param nameOf placeholder name of the n-th upcoming node of a group.
   * @param isThere whether a node is ready, and so no longer upcoming.
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

  /** Pods and existing nodes, where it matters which pod goes to which node. */
  get wishes(): readonly PlannedPod[] {
    return this.#places.flatMap(({ node, pods, matters }) =>
      node === undefined || !matters ? [] : [...pods].map((uid) => ({ uid, node })),
    )
  }

  /** Records that the nomination was written. */
  nominate({ uid, node }: PlannedPod): void {
    this.#nominations.set(uid, node)
  }

  /** Whether we wrote the pod's nomination, so that no preemption makes room for it. */
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

/** Assigns the pods of new nodes to the growing groups, in order; a group grows by `delta` nodes. */
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
