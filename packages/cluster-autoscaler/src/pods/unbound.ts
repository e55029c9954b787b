/** Copies of pods as if created again: not bound to a node. */
import type { Pod } from '@tenon/api'

/** Cached by pod, so that cached facts about the copy are found again in the next loop. */
const copies = new WeakMap<Pod, Pod>()

export function unbound(pod: Pod): Pod {
  if (pod.spec.nodeName === undefined) return pod
  let copy = copies.get(pod)
  if (copy === undefined) {
    const { nodeName: _, ...spec } = pod.spec
    copy = { ...pod, spec }
    copies.set(pod, copy)
  }
  return copy
}
