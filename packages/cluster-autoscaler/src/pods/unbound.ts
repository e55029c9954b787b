/** Pods as they would be created again: bound to no node. */
import type { Pod } from '@tenon/api'

/** Kept with the pod, so that what filters know of the copy is found again in the next loop. */
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
