/** In which order the pods of a decision are nominated (planned-placement.md). */
import { ownValue, type Pod, podRequests, type Resources, sum } from '@tenon/api'
import { type NewClaim, demandsOf, hostPortsOf, type SchedulingResult } from '@tenon/engine'

/** Fewer pods, or a smaller share of them, are not worth the risk that one is left over. */
const leastFillers = { count: 100, share: 1 / 3 } as const

interface Decided {
  readonly placements: SchedulingResult['placements']
  readonly claims: readonly Pick<NewClaim, 'pods'>[]
}

/**
 * Computed in steps: pods with rules beyond amounts first, then the largest. Nodes may open before all pods are
 * nominated, and the rest should fit anywhere.
 * @returns the turn of each pending pod, by UID, from 0; fillers have none.
 */
export function* nominationOrder({
  placements,
  claims,
}: Decided): Generator<undefined, ReadonlyMap<string, number>, undefined> {
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
  const fillers = yield* fillersAmong(sizes)
  // Infinity - Infinity is NaN.
  const largerFirst = (a: Pod, b: Pod) => (sizeOf(a) === sizeOf(b) ? 0 : sizeOf(b) - sizeOf(a))
  const nominated = pods.filter((pod) => !fillers.has(pod))
  return new Map(nominated.toSorted(largerFirst).map(({ metadata: { uid = '' } }, turn) => [uid, turn]))
}

/**
 * Pods that need no nomination: the smallest, if they are identical and many. Once the room of all others is kept, they
 * are interchangeable. A few are nominated all the same: if the plan is followed exactly, no pod is left over.
 */
function* fillersAmong(sizes: ReadonlyMap<Pod, number>): Generator<undefined, ReadonlySet<Pod>, undefined> {
  let least = Number.POSITIVE_INFINITY
  let isRuled = false
  let lowest = Number.POSITIVE_INFINITY
  for (const [{ spec }, size] of sizes) {
    least = Math.min(least, size)
    isRuled ||= size === Number.POSITIVE_INFINITY
    lowest = Math.min(lowest, spec.priority ?? 0)
  }
  const fillers = new Set<Pod>()
  if (isRuled) return fillers
  let shape: string | undefined
  for (const [pod, size] of sizes) {
    yield
    if (size !== least) continue
    const own = demandsOf(pod)
    shape ??= own
    // A nomination keeps room only from pods of the same or lower priority.
    if (own !== shape || (pod.spec.priority ?? 0) > lowest) return new Set()
    fillers.add(pod)
  }
  const isWorthIt = fillers.size >= Math.max(leastFillers.count, sizes.size * leastFillers.share)
  return isWorthIt && fillers.size < sizes.size ? fillers : new Set()
}

/** Whether more than resource requests restricts where the pod may go. */
function hasRules({ spec }: Pod): boolean {
  return (
    spec.affinity !== undefined ||
    (spec.topologySpreadConstraints ?? []).length > 0 ||
    (spec.volumes ?? []).some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral) ||
    hostPortsOf(spec).length > 0
  )
}

/** Without `pods`, of which every pod takes one. */
function largestShare(own: Resources, total: Resources): number {
  const shares = Object.entries(own).map(([name, amount]) =>
    name === 'pods' ? 0 : amount / (ownValue(total, name) ?? amount),
  )
  return Math.max(0, ...shares.filter(Number.isFinite))
}
