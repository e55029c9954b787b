/** In which order the scheduler is told about the pods of a decision (planned-placement.md). */
import { ownValue, type Pod, podRequests, type Resources, sum } from '@tenon/api'
import { type NewClaim, demandsOf, hostPortsOf, type SchedulingResult } from '@tenon/engine'

/** How many pods of a decision, and which share of them: fewer are not worth that one may be left over. */
const leastFillers = { count: 100, share: 1 / 3 } as const

/** Of a decision, what the order depends on. */
interface Decided {
  readonly placements: SchedulingResult['placements']
  readonly claims: readonly Pick<NewClaim, 'pods'>[]
}

/**
 * Works out in steps whose turn it is when: first pods about which more than amounts decides, then the largest.
 * Nodes may open before all are told about, and who is left over then should fit anywhere.
 * @returns the turn of each pod that waits for a node, by UID, from 0; none for those that take what room is left.
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
  // Two infinite sizes have no difference.
  const largerFirst = (a: Pod, b: Pod) => (sizeOf(a) === sizeOf(b) ? 0 : sizeOf(b) - sizeOf(a))
  const told = pods.filter((pod) => !fillers.has(pod))
  return new Map(told.toSorted(largerFirst).map(({ metadata: { uid = '' } }, turn) => [uid, turn]))
}

/**
 * Pods that the scheduler need not be told about: the smallest, if they are alike and many. Once the room of all
 * others is kept, each of them may take the place of any other. Of a few it is told all the same: a plan that comes
 * true to the letter leaves nobody over.
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
    // Room is kept from pods of the same priority, or a lower one.
    if (own !== shape || (pod.spec.priority ?? 0) > lowest) return new Set()
    fillers.add(pod)
  }
  const isWorthIt = fillers.size >= Math.max(leastFillers.count, sizes.size * leastFillers.share)
  return isWorthIt && fillers.size < sizes.size ? fillers : new Set()
}

/** Whether more than the amounts it asks for decides where the pod may go. */
function hasRules({ spec }: Pod): boolean {
  return (
    spec.affinity !== undefined ||
    (spec.topologySpreadConstraints ?? []).length > 0 ||
    (spec.volumes ?? []).some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral) ||
    hostPortsOf(spec).length > 0
  )
}

/** Of the amounts alone: every pod takes one place for a pod. */
function largestShare(own: Resources, total: Resources): number {
  const shares = Object.entries(own).map(([name, amount]) =>
    name === 'pods' ? 0 : amount / (ownValue(total, name) ?? amount),
  )
  return Math.max(0, ...shares.filter(Number.isFinite))
}
