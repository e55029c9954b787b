/** Which room of a ProvisioningRequest pods have taken (gangs.md 7.6). */
import { type Pod, podRequests } from '@tenon/api'
import { isSameValue } from '../../state/same-value.ts'

/**
 * The pods that stand for room which is left.
 * @param sets the pods of each set.
 * @param consumers pods made for the request that have a node.
 * @param nodeOf the Node on which there is room for a pod that stands for it.
 */
export function remainingPods(
  sets: readonly (readonly Pod[])[],
  consumers: readonly Pod[],
  nodeOf: (pod: Pod) => string | undefined,
): readonly Pod[] {
  const left = sets.map((pods) => [...pods])
  const rest: Pod[] = []
  const ordered = consumers.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  // Those that took the place kept for them come first, so that the others stay where they are.
  for (const consumer of ordered) {
    const place = left
      .filter((pods) => isLike(pods[0], consumer))
      .map((pods) => ({ pods, at: pods.findIndex((pod) => nodeOf(pod) === consumer.spec.nodeName) }))
      .find(({ at }) => at >= 0)
    if (place === undefined) rest.push(consumer)
    else place.pods.splice(place.at, 1)
  }
  for (const consumer of rest) {
    const filled = left.filter((pods) => pods.length > 0)
    const own = filled.find((pods) => isLike(pods[0], consumer)) ?? filled[0]
    own?.pop()
  }
  return left.flat()
}

/** Whether a pod is as those of a set: it asks for the same. */
function isLike(model: Pod | undefined, pod: Pod): boolean {
  return model !== undefined && isSameValue(podRequests(model.spec), podRequests(pod.spec))
}
