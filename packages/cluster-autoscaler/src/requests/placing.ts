/** Places the pods of ProvisioningRequests on existing and upcoming nodes (gangs.md 2.4, 3, 4). */
import type { Pod } from '@tenon/api'
import { type Snapshot, unavailableMessage } from '@tenon/filters'
import { type PlacementHints, placeFor } from '../pods/pending-pods.ts'

/**
 * Places as many pods as possible; if one of a set does not fit, the rest of the set is skipped.
 * @returns those that do not fit.
 */
export function* placeAll(
  sets: readonly (readonly Pod[])[],
  snapshot: Snapshot,
  hints: PlacementHints,
): Generator<void, readonly Pod[]> {
  const left: Pod[] = []
  for (const pods of sets) {
    let isFull = false
    for (const pod of pods) {
      const uid = pod.metadata.uid ?? ''
      const entry = isFull ? undefined : placeFor(pod, snapshot, hints.get(uid))
      if (entry === undefined) {
        isFull = true
        hints.delete(uid)
        left.push(pod)
      } else {
        snapshot.assign(pod, entry.name)
        hints.set(uid, entry.name)
      }
      yield
    }
  }
  return left
}

/**
 * Places all pods or none.
 * @returns the first that does not fit.
 */
export function* placeWhole(
  sets: readonly (readonly Pod[])[],
  snapshot: Snapshot,
): Generator<void, Pod | undefined> {
  const mark = snapshot.mark()
  for (const pods of sets)
    for (const pod of pods) {
      const entry = placeFor(pod, snapshot, undefined)
      if (entry === undefined) {
        snapshot.revert(mark)
        return pod
      }
      snapshot.assign(pod, entry.name)
      yield
    }
  return undefined
}

/** Why a pod fits on no node, worded like the scheduler. */
export function* whyNowhere(pod: Pod, snapshot: Snapshot): Generator<void, string> {
  const reasons: (readonly string[])[] = []
  for (const entry of snapshot.nodes) {
    reasons.push(
      entry.unschedulable ? ['node(s) were unschedulable'] : (snapshot.check(pod, entry)?.reasons ?? []),
    )
    yield
  }
  return unavailableMessage(reasons.length, reasons)
}
