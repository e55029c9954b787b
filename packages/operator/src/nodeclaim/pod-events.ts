import { karpenterKinds, type NodeClaim, type Pod } from '@tenon/api'
import { type Change, done, isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { ControllerSpec } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { isDaemonPod, isTerminal, isTerminating } from '../state/pods/pods.ts'
import { conditionsAfterPodEvent } from './disruption-conditions.ts'

const leastGapMs = 10_000

/** `nodeclaim.podevents`: writes when pods were last added to a node or left it (lifecycle.md 8). Its keys are Nodes. */
export function podEvents(
  client: Pick<KubeClient, 'patch'>,
  caches: Caches,
  state: ClusterState,
  clock: Clock,
): ControllerSpec {
  return {
    name: 'nodeclaim.podevents',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      caches.pods.onChange((change) => {
        const node = notePodEvent(change, caches, state, clock.now())
        if (node !== undefined) enqueue(node)
      })
    },
    async reconcile(nodeName) {
      const { consolidation, unnotedPodEvents } = state
      const atMs = unnotedPodEvents.get(nodeName)
      if (atMs === undefined) return done
      const claim = claimOfNode(caches, state, nodeName)
      const last = claim?.status?.lastPodEventTime
      const isNoted = last !== undefined && atMs - Date.parse(last) < leastGapMs
      if (claim !== undefined && !isNoted) await stamp(client, caches, claim, clock.now())
      if (unnotedPodEvents.get(nodeName) === atMs) unnotedPodEvents.delete(nodeName)
      // No change of the claim triggers consolidation of the node.
      if (isNoted) consolidation.bump()
      return done
    },
  }
}

/** @returns the node to reconcile, if the change matters to one. */
export function notePodEvent(
  change: Change<Pod>,
  caches: Caches,
  state: ClusterState,
  nowMs: number,
): string | undefined {
  const { nodeName = '' } = change.object.spec
  const { movedPods, recentlyFilledNodes, unnotedPodEvents: unnoted } = state
  // The end of a pod that a decision moved, such as of a Job's pod, is no reason to decide about its node again.
  if (isDeparture(change) && !movedPods.isMoved(change.object)) {
    const claim = claimOfNode(caches, state, nodeName)
    if (claim !== undefined) recentlyFilledNodes.loosen(claim.metadata.name)
  }
  if (!isPodEvent(change)) return undefined
  // The scheduler may put moved pods elsewhere than planned; they are not moved again at once.
  if (isArrival(change) && movedPods.isMoved(change.object)) {
    const claim = claimOfNode(caches, state, nodeName)
    if (claim !== undefined) recentlyFilledNodes.fill(claim.metadata.name)
  }
  const atMs = change.kind === 'added' ? (lastEventMs(change.object) ?? nowMs) : nowMs
  unnoted.set(nodeName, Math.max(atMs, unnoted.get(nodeName) ?? 0))
  return nodeName
}

function claimOfNode(caches: Caches, state: ClusterState, name: string): NodeClaim | undefined {
  const node = caches.nodes.get({ name })
  return node === undefined ? undefined : state.claimOf(node)
}

/** Writes the time, and the conditions that follow from it in the same request: a busy cluster has many pod events. */
async function stamp(
  client: Pick<KubeClient, 'patch'>,
  caches: Caches,
  claim: NodeClaim,
  nowMs: number,
): Promise<void> {
  const lastPodEventTime = rfc3339(nowMs)
  const conditions = conditionsAfterPodEvent(caches, claim)
  const { resourceVersion } = claim.metadata
  if (conditions !== undefined && resourceVersion !== undefined) {
    const isWritten = await write(client, claim, { lastPodEventTime, conditions }, resourceVersion)
    if (isWritten) return
  }
  await write(client, claim, { lastPodEventTime })
}

/** @returns false if the claim has changed since `resourceVersion`. */
async function write(
  client: Pick<KubeClient, 'patch'>,
  { metadata: { name } }: NodeClaim,
  status: object,
  resourceVersion?: string,
): Promise<boolean> {
  const lock = resourceVersion === undefined ? {} : { resourceVersion }
  try {
    await client.patch(
      karpenterKinds.nodeClaim,
      { name },
      { status },
      { subresource: 'status', isAnswerUnread: true, ...lock },
    )
  } catch (error) {
    if (isKubeError(error, 'conflict') && resourceVersion !== undefined) return false
    if (!isKubeError(error, 'notFound')) throw error
  }
  return true
}

/** Whether a pod was bound, ended, or began to terminate. */
function isPodEvent(change: Change<Pod>): boolean {
  const pod = change.object
  if (pod.spec.nodeName === undefined || pod.spec.nodeName === '' || isDaemonPod(pod)) return false
  if (change.kind === 'added') return true
  if (change.kind === 'deleted') return false
  const { old } = change
  return (
    old.spec.nodeName !== pod.spec.nodeName ||
    isTerminal(old) !== isTerminal(pod) ||
    isTerminating(old) !== isTerminating(pod)
  )
}

function isArrival(change: Change<Pod>): boolean {
  const pod = change.object
  if (isTerminal(pod) || isTerminating(pod)) return false
  return (
    change.kind === 'added' || (change.kind === 'updated' && change.old.spec.nodeName !== pod.spec.nodeName)
  )
}

function isDeparture(change: Change<Pod>): boolean {
  const pod = change.object
  if ((pod.spec.nodeName ?? '') === '' || isDaemonPod(pod)) return false
  const isGoing = (each: Pod) => isTerminal(each) || isTerminating(each)
  if (change.kind === 'deleted') return !isGoing(pod)
  return change.kind === 'updated' && isGoing(pod) && !isGoing(change.old)
}

/**
 * When the pod was bound, ended or began to terminate, whichever is last; undefined if its status does not say. After a
 * restart, every pod appears as added, and old events must not count as new ones.
 */
function lastEventMs(pod: Pod): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata
  const { conditions = [], startTime } = pod.status ?? {}
  const scheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'True')
  const boundMs = Date.parse(scheduled?.lastTransitionTime ?? startTime ?? '')
  if (Number.isNaN(boundMs)) return undefined
  const leavesMs = Date.parse(deletionTimestamp ?? '') - 1000 * deletionGracePeriodSeconds
  const endedMs = isTerminal(pod) ? conditions.map((each) => Date.parse(each.lastTransitionTime ?? '')) : []
  return Math.max(boundMs, ...[leavesMs, ...endedMs].filter((ms) => !Number.isNaN(ms)))
}
