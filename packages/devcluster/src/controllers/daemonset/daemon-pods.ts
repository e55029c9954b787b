/** The pods of DaemonSets by node, followed: most looks at a set find nearly all of them as they were. */
import type { Pod } from '@tenon/api'
import { keyOf, type Index, type ObjectCache } from '../loop/object-cache.ts'
import { controllerOf } from '../objects/owners.ts'
import { nodeOf } from './daemon-pod.ts'

/** What one set controls, as it is now. */
export interface DaemonPods {
  /** Lists are replaced, never changed. */
  readonly byNode: ReadonlyMap<string, readonly Pod[]>
  /** Pods that have come, or got other labels, since somebody took them from here, by key. */
  readonly unclaimed: Map<string, Pod>
}

interface Followed extends DaemonPods {
  readonly byNode: Map<string, readonly Pod[]>
}

export class DaemonPodsBySet {
  readonly #byOwner: Index<Pod>
  /** By UID; those of sets that somebody has asked about. */
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
  if (node !== undefined) byNode.set(node, [...(byNode.get(node) ?? []), pod])
}

function leave({ byNode, unclaimed }: Followed, pod: Pod): void {
  unclaimed.delete(keyOf(pod))
  const node = nodeOf(pod)
  if (node === undefined) return
  const left = (byNode.get(node) ?? []).filter((each) => each !== pod)
  if (left.length > 0) byNode.set(node, left)
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
    const there = byNode.get(node) ?? []
    byNode.set(
      node,
      there.map((each) => (each === before ? now : each)),
    )
  }
  if (isUnclaimed) unclaimed.set(key, now)
}
