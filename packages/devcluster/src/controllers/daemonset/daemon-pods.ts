/** Indexes the pods of DaemonSets by node, so that a reconcile finds most of them unchanged. */
import type { Pod } from '@tenon/api'
import { keyOf, type Index, type ObjectCache } from '../loop/object-cache.ts'
import { controllerOf } from '../objects/owners.ts'
import { isActive, isReady, isTerminating } from '../objects/pods.ts'
import { revisionHashLabel } from '../objects/revision-history.ts'
import { nodeOf } from './daemon-pod.ts'

/** The state of a DaemonSet's pods on one node, without terminating ones. */
interface NodePodState {
  /** A ready pod if there is one, else the oldest. */
  readonly first: Pod | undefined
  readonly isReady: boolean
  /** Revisions of all. */
  readonly hashes: readonly (string | undefined)[]
}

const nobody: NodePodState = { first: undefined, isReady: false, hashes: [] }

/** Pods of a DaemonSet on one node, usually one. */
class NodePods {
  readonly pods: readonly Pod[]
  /** Whether there is exactly one, which is neither finished nor terminating. */
  readonly isOneAtWork: boolean
  #fare: NodePodState | undefined

  constructor(pods: readonly Pod[]) {
    this.pods = pods
    const [only] = pods
    this.isOneAtWork = pods.length === 1 && only !== undefined && isActive(only)
  }

  get fare(): NodePodState {
    this.#fare ??= fareOf(this.pods)
    return this.#fare
  }
}

function fareOf(pods: readonly Pod[]): NodePodState {
  const left = pods.some(isTerminating) ? pods.filter((pod) => !isTerminating(pod)) : pods
  const first = left.length > 1 ? left.toSorted(readyFirst)[0] : left[0]
  if (first === undefined) return nobody
  return {
    first,
    isReady: isReady(first),
    hashes: left.map((pod) => pod.metadata.labels?.[revisionHashLabel]),
  }
}

export function oldestFirst(a: Pod, b: Pod): number {
  const left = a.metadata.creationTimestamp ?? ''
  const right = b.metadata.creationTimestamp ?? ''
  if (left !== right) return left < right ? -1 : 1
  return a.metadata.name < b.metadata.name ? -1 : 1
}

function readyFirst(a: Pod, b: Pod): number {
  return Number(isReady(b)) - Number(isReady(a)) || oldestFirst(a, b)
}

/** The current pods of one DaemonSet. */
export interface DaemonPods {
  /** The entry of a node is replaced, never changed. */
  readonly byNode: ReadonlyMap<string, NodePods>
  /** New or relabelled pods since the last read, by key. */
  readonly unclaimed: Map<string, Pod>
}

interface Followed extends DaemonPods {
  readonly byNode: Map<string, NodePods>
}

export class DaemonPodsBySet {
  readonly #byOwner: Index<Pod>
  /** By UID; only DaemonSets that were read. */
  readonly #sets = new Map<string, Followed>()

  constructor(pods: ObjectCache<Pod>, byOwner: Index<Pod>) {
    this.#byOwner = byOwner
    pods.onChange((now, before) => {
      const [is, was] = [this.#setOf(now), this.#setOf(before)]
      if (is !== undefined && is === was && now !== undefined && before !== undefined) {
        replace(is, before, now)
        return
      }
      if (was !== undefined && before !== undefined) leave(was, before)
      if (is !== undefined && now !== undefined) enter(is, now)
    })
  }

  of(uid: string): DaemonPods {
    const known = this.#sets.get(uid)
    if (known !== undefined) return known
    const set: Followed = { byNode: new Map(), unclaimed: new Map() }
    for (const pod of this.#byOwner.of(uid)) enter(set, pod)
    this.#sets.set(uid, set)
    return set
  }

  forget(uid: string): void {
    this.#sets.delete(uid)
  }

  #setOf(pod: Pod | undefined): Followed | undefined {
    return this.#sets.get((pod && controllerOf(pod)?.uid) ?? '')
  }
}

function enter({ byNode, unclaimed }: Followed, pod: Pod): void {
  unclaimed.set(keyOf(pod), pod)
  const node = nodeOf(pod)
  if (node !== undefined) byNode.set(node, new NodePods([...(byNode.get(node)?.pods ?? []), pod]))
}

function leave({ byNode, unclaimed }: Followed, pod: Pod): void {
  unclaimed.delete(keyOf(pod))
  const node = nodeOf(pod)
  if (node === undefined) return
  const left = (byNode.get(node)?.pods ?? []).filter((each) => each !== pod)
  if (left.length > 0) byNode.set(node, new NodePods(left))
  else byNode.delete(node)
}

function replace(set: Followed, before: Pod, now: Pod): void {
  const { byNode, unclaimed } = set
  const key = keyOf(now)
  const isUnclaimed = unclaimed.has(key) || now.metadata.labels !== before.metadata.labels
  const node = nodeOf(now)
  if (node !== nodeOf(before)) {
    leave(set, before)
    enter(set, now)
  } else if (node !== undefined) {
    const there = byNode.get(node)?.pods ?? []
    byNode.set(node, new NodePods(there.map((each) => (each === before ? now : each))))
  }
  if (isUnclaimed) unclaimed.set(key, now)
}
