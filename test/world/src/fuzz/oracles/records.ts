/** Properties of the recorded pods and nodes. */
import type { KubeObject, NodePool } from '@tenon/api'
import type { Case, Finding } from '../case.ts'
import type { NodeRecord, Observer, PodRecord } from '../observer.ts'

/** The part of the observer that is needed. */
type Seen = Pick<Observer, 'pods' | 'nodes' | 'workloadPods'>

const minute = 60_000
const hour = 60 * minute

/** A pod that waits longer than this was not helped by the first node. */
const slowMs = 5 * minute
/** A node that has been ready for this long without a pod is useless. */
const uselessAfterMs = 3 * minute
/** A node without pods is removed within this time of being ready, if its NodePool allows it. */
const idleMs = 30 * minute

/** No instance is deleted while pods run on its node that were not evicted. */
export function nothingLost({ losses }: Pick<Observer, 'losses'>): readonly Finding[] {
  return losses.map(({ text, atMs }) => ({ oracle: 'nothingLost', text, atMs }))
}

/**
 * For each NodePool, pending pod and hour, there is at most one node that no workload pod ever ran on: a
 * failure in one NodePool proves nothing about another (reports-2.md 1). One more is allowed for each pod that
 * was created at that time and placed soon: the scheduler may have put it on a node for another pod.
 */
export function noUselessNodes(observer: Seen, given: Case, nowMs: number): readonly Finding[] {
  const statics = given.objects.filter(isNodePool).filter(({ spec }) => spec.replicas !== undefined)
  const isCounted = (node: NodeRecord): boolean =>
    node.pool !== undefined && statics.every(({ metadata }) => metadata.name !== node.pool)
  const useless = [...observer.nodes.values()].filter(
    (node) =>
      isCounted(node) && node.pods.size === 0 && (node.goneMs ?? nowMs) - node.createdMs > uselessAfterMs,
  )
  const pods = observer.workloadPods()
  const slow = pods.filter((pod) => (pod.runningMs ?? pod.goneMs ?? nowMs) - pod.createdMs > slowMs)
  const hours = Math.ceil(nowMs / hour)
  // If every pod was placed at once, soft constraints may have requested a node each.
  const allowed =
    slow.length === 0
      ? pods.length
      : slow.length * hours * new Set(useless.map(({ pool }) => pool)).size +
        meantForOthers(
          useless,
          pods.filter((pod) => !slow.includes(pod)),
        )
  if (useless.length <= allowed) return []
  const text =
    `${useless.length} of ${observer.nodes.size} nodes never had a pod of a workload, ` +
    `${slow.length} of ${pods.length} pods waited for long: ${useless.slice(0, 5).map(nodeText).join(', ')}`
  return [{ oracle: 'noUselessNodes', text, atMs: useless[allowed]?.createdMs ?? nowMs }]
}

/** How many of the nodes were launched around the creation of a pod, each for another one. */
function meantForOthers(nodes: readonly NodeRecord[], pods: readonly PodRecord[]): number {
  const left = nodes.toSorted((a, b) => a.createdMs - b.createdMs)
  let count = 0
  for (const { createdMs } of pods.toSorted((a, b) => a.createdMs - b.createdMs)) {
    const index = left.findIndex((node) => Math.abs(node.createdMs - createdMs) <= slowMs)
    if (index < 0) continue
    left.splice(index, 1)
    count++
  }
  return count
}

/** A node that no workload pod ever ran on is not kept for a pod that the scheduler places elsewhere. */
export function noIdleNodes({ nodes }: Seen, given: Case, nowMs: number): readonly Finding[] {
  const pools = new Set(
    given.objects
      .filter(isNodePool)
      .filter(removesEmpty)
      .map(({ metadata }) => metadata.name),
  )
  const idle = [...nodes.values()].filter(
    ({ pool = '', pods, readyMs = nowMs, goneMs }) =>
      pools.has(pool) && pods.size === 0 && goneMs === undefined && nowMs - readyMs > idleMs,
  )
  if (idle.length === 0) return []
  const text = `no pod of a workload ever came to ${idle.map(nodeText).join(', ')}, and ${idle.length === 1 ? 'it is' : 'they are'} still there ${idleMs / minute} min after becoming ready`
  return [{ oracle: 'noIdleNodes', text, atMs: nowMs }]
}

const isNodePool = (object: KubeObject): object is NodePool => object.kind === 'NodePool'

/** Whether empty nodes of the NodePool may be removed at any time. */
function removesEmpty({ spec }: NodePool): boolean {
  const { consolidateAfter, budgets = [] } = spec.disruption ?? {}
  return (
    spec.replicas === undefined && consolidateAfter !== 'Never' && budgets.every(({ nodes }) => nodes !== '0')
  )
}

/** Events about rejections contain the scheduler's message, or what the node has less of than was planned. */
export function reasonTold({ refusals }: Pick<Observer, 'refusals'>, given: Case): readonly Finding[] {
  const apps = given.surroundings.refusedApps ?? []
  const silent = refusals.find(
    ({ pod, text }) =>
      apps.some((app) => pod.includes(`/${app}-`)) &&
      !['nodes are available: ', 'than was planned'].some((words) => text.includes(words)),
  )
  if (silent === undefined) return []
  const text = `pod ${silent.pod} is refused by the scheduler, and its Event does not say why: ${silent.text}`
  return [{ oracle: 'reasonTold', text, atMs: silent.atMs }]
}

const nodeText = ({ name, pool }: NodeRecord): string => `${name} of NodePool ${pool}`

/** A running pod is not disrupted for a quarter of an hour, unless something else in the cluster changes. */
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

/** Whether a pod was created, terminated, or deleted by anything but the operator, in that time. */
function hasChangedBetween(pod: PodRecord, fromMs: number, toMs: number): boolean {
  if (pod.isDaemon) return false
  const isWithin = (ms: number | undefined): boolean => ms !== undefined && ms >= fromMs && ms < toMs
  const isDeletedByOthers = pod.evictedMs === undefined && isWithin(pod.deletionMs)
  return isWithin(pod.createdMs) || isWithin(pod.finishedMs) || isDeletedByOthers
}
