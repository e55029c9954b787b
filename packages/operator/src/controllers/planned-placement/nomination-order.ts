/** In which order the scheduler is told about the pods of a decision (planned-placement.md). */
import type { Pod, Resources } from '@tenon/api'
import { podRequests, type SchedulingResult, sum } from '@tenon/engine'

/**
 * Works out in steps whose turn it is when: first pods about which more than amounts decides, then the largest.
 * Nodes may open before all are told about, and who is left over then should fit anywhere.
 * @returns the turn of each pod that waits for a node, by UID, from 0.
 */
export function* nominationOrder({
  placements,
  claims,
}: Pick<SchedulingResult, 'placements' | 'claims'>): Generator<
  undefined,
  ReadonlyMap<string, number>,
  undefined
> {
  const pods = [...placements.map(({ pod }) => pod), ...claims.flatMap((claim) => claim.pods)].filter(
    ({ spec }) => (spec.nodeName ?? '') === '',
  )
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
  return new Map(pods.toSorted(largerFirst).map(({ metadata: { uid = '' } }, turn) => [uid, turn]))
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

/** Of the amounts alone: every pod takes one place for a pod. */
function largestShare(own: Resources, total: Resources): number {
  const shares = Object.entries(own).map(([name, amount]) =>
    name === 'pods' ? 0 : amount / (total[name] ?? amount),
  )
  return Math.max(0, ...shares.filter(Number.isFinite))
}
