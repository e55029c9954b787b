/** Which pods of a decision the scheduler is told about, and in which order (planned-placement.md). */
import type { Pod, Resources } from '@tenon/api'
import { podRequests, type SchedulingResult, sum } from '@tenon/engine'

/**
 * Tells in steps in which order the scheduler is told about the pods of a decision: first those about which
 * more than amounts decides, then the largest. Where there are more than `most`, the rest are left out: they
 * find room between the others wherever the scheduler puts them, and telling it about each would take longer
 * than nodes may wait.
 * @returns the turn of each pod by UID, from 0.
 */
export function* steeredPods(
  { placements, claims }: Pick<SchedulingResult, 'placements' | 'claims'>,
  most: number,
): Generator<undefined, ReadonlyMap<string, number>, undefined> {
  if (most <= 0) return new Map()
  const pods = [...placements.map(({ pod }) => pod), ...claims.flatMap((claim) => claim.pods)]
  let total: Resources = {}
  const requests = new Map<Pod, Resources>()
  for (const pod of pods) {
    const own = podRequests(pod.spec, pod.status)
    requests.set(pod, own)
    total = sum(total, own)
    yield
  }
  const sizes = new Map<Pod, number>()
  for (const [pod, own] of requests) {
    sizes.set(pod, hasRules(pod) ? Number.POSITIVE_INFINITY : largestShare(own, total))
    yield
  }
  const sizeOf = (pod: Pod) => sizes.get(pod) ?? 0
  // Two infinite sizes have no difference.
  const largerFirst = (a: Pod, b: Pod) => (sizeOf(a) === sizeOf(b) ? 0 : sizeOf(b) - sizeOf(a))
  const chosen = pods.toSorted(largerFirst).slice(0, most)
  return new Map(chosen.map(({ metadata: { uid = '' } }, turn) => [uid, turn]))
}

/** Whether more than the amounts it asks for decides where the pod may go. */
function hasRules({ spec }: Pod): boolean {
  return (
    spec.affinity !== undefined ||
    (spec.topologySpreadConstraints ?? []).length > 0 ||
    (spec.volumes ?? []).some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral) ||
    spec.containers.some(({ ports }) => ports?.some(({ hostPort }) => hostPort !== undefined))
  )
}

function largestShare(own: Resources, total: Resources): number {
  const shares = Object.entries(own).map(([name, amount]) => amount / (total[name] ?? amount))
  return Math.max(0, ...shares.filter(Number.isFinite))
}
