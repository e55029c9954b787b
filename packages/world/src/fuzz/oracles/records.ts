/** What can be said from the records of pods and nodes. */
import type { Case, Finding } from '../case.ts'
import type { NodeRecord, Observer, PodRecord } from '../observer.ts'

/** What is needed of what was seen. */
type Seen = Pick<Observer, 'pods' | 'nodes' | 'workloadPods'>

const minute = 60_000
const hour = 60 * minute

/** A pod that waits longer than this was not helped by the first node. */
const slowMs = 5 * minute
/** A node that has stood this long without a pod is of no use. */
const uselessAfterMs = 3 * minute

/** No node's machine goes while pods run on it that nobody asked to leave. */
export function nothingLost({ losses }: Pick<Observer, 'losses'>): readonly Finding[] {
  return losses.map(({ text, atMs }) => ({ oracle: 'nothingLost', text, atMs }))
}

/** At most one node that no pod of a workload ever came to, for each pod that waits and each hour. */
export function noUselessNodes(observer: Seen, given: Case, nowMs: number): readonly Finding[] {
  const statics = given.objects.filter(
    (object) => object.kind === 'NodePool' && 'replicas' in (object as unknown as { spec: object }).spec,
  )
  const isCounted = (node: NodeRecord): boolean =>
    node.pool !== undefined && statics.every(({ metadata }) => metadata.name !== node.pool)
  const useless = [...observer.nodes.values()].filter(
    (node) =>
      isCounted(node) && node.pods.size === 0 && (node.goneMs ?? nowMs) - node.createdMs > uselessAfterMs,
  )
  const pods = observer.workloadPods()
  const slow = pods.filter((pod) => (pod.runningMs ?? pod.goneMs ?? nowMs) - pod.createdMs > slowMs)
  const hours = Math.ceil(nowMs / hour)
  // Where every pod found its place at once, soft rules may have asked for a node each.
  const allowed = slow.length === 0 ? pods.length : slow.length * hours
  if (useless.length <= allowed) return []
  const text =
    `${useless.length} of ${observer.nodes.size} nodes never had a pod of a workload, ` +
    `${slow.length} of ${pods.length} pods waited for long: ${useless.slice(0, 5).map(nodeText).join(', ')}`
  return [{ oracle: 'noUselessNodes', text, atMs: useless[allowed]?.createdMs ?? nowMs }]
}

const nodeText = ({ name, pool }: NodeRecord): string => `${name} of NodePool ${pool}`

/** A pod that runs is left alone for a quarter of an hour, unless something else in the cluster changes. */
export function calmStart(observer: Seen, given: Case): readonly Finding[] {
  if ((given.surroundings.answers ?? []).length > 0) return []
  const pods = [...observer.pods.values()]
  const evicted = observer
    .workloadPods()
    .filter((pod) => pod.evictedMs !== undefined && pod.runningMs !== undefined)
  const early = evicted
    .filter((pod) => (pod.evictedMs ?? 0) - (pod.runningMs ?? 0) < 15 * minute)
    .filter((pod) => !pods.some((other) => hasChangedBetween(other, pod.runningMs ?? 0, pod.evictedMs ?? 0)))
    .filter((pod) =>
      given.steps.every(({ atMs }) => atMs < (pod.runningMs ?? 0) || atMs > (pod.evictedMs ?? 0)),
    )
    .toSorted((a, b) => (a.evictedMs ?? 0) - (b.evictedMs ?? 0))
  const [first] = early
  if (first === undefined) return []
  const seconds = ((first.evictedMs ?? 0) - (first.runningMs ?? 0)) / 1000
  const text = `pod ${first.name} was evicted from ${first.node} ${seconds} s after it had begun to run, and nothing else had changed; ${early.length} such pod(s)`
  return [{ oracle: 'calmStart', text, atMs: first.evictedMs ?? 0 }]
}

/** Whether a pod came, ended or was deleted by others than the operator in that time. */
function hasChangedBetween(pod: PodRecord, fromMs: number, toMs: number): boolean {
  if (pod.isDaemon) return false
  const isWithin = (ms: number | undefined): boolean => ms !== undefined && ms >= fromMs && ms < toMs
  const isDeletedByOthers = pod.evictedMs === undefined && isWithin(pod.deletionMs)
  return isWithin(pod.createdMs) || isWithin(pod.finishedMs) || isDeletedByOthers
}
