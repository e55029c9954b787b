/** `nodeclaim.podevents`: remembers when pods last came to or left a node (lifecycle.md 8). */
import { karpenterKinds, type NodeClaim, type Pod } from '@tenon/api'
import { type Change, done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { isDaemonPod, isTerminal, isTerminating } from '../state/pods/pods.ts'
import { conditionsAfterPodEvent } from './disruption/disruption-conditions.ts'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodePools' | 'nodes' | 'pods'>
  readonly state: Pick<
    ClusterState,
    'claimOf' | 'consolidation' | 'movedPods' | 'recentlyFilledNodes' | 'unnotedPodEvents'
  >
  readonly clock: Clock
}

const leastGapMs = 10_000

/** Follows the pods and stamps the claims of their nodes. */
export class PodEvents implements ControllerSpec {
  readonly name = 'nodeclaim.podevents'
  readonly concurrency = { least: 1, most: 1 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    this.#deps.caches.pods.onChange((change) => {
      const node = this.note(change)
      if (node !== undefined) enqueue(node)
    })
  }

  /** @returns the node that is to be reconciled, if the change matters to one. */
  note(change: Change<Pod>): string | undefined {
    const { nodeName = '' } = change.object.spec
    const { recentlyFilledNodes, movedPods } = this.#deps.state
    // A workload may end because its pods were moved, as a Job does: that is no news to the decision that moved them.
    if (isDeparture(change) && !movedPods.isMoved(change.object))
      this.#ofNode(nodeName, (claim) => recentlyFilledNodes.loosen(claim))
    if (!isPodEvent(change)) return undefined
    // The scheduler need not put moved pods where room was found for them: they are left alone where they come to.
    if (isArrival(change) && movedPods.isMoved(change.object))
      this.#ofNode(nodeName, (claim) => recentlyFilledNodes.fill(claim))
    const nowMs = this.#deps.clock.now()
    const atMs = change.kind === 'added' ? (shownMs(change.object) ?? nowMs) : nowMs
    const { unnotedPodEvents: unnoted } = this.#deps.state
    unnoted.set(nodeName, Math.max(atMs, unnoted.get(nodeName) ?? 0))
    return nodeName
  }

  /** @param note is told the name of the node's claim, if it has one. */
  #ofNode(nodeName: string, note: (claim: string) => void): void {
    const { caches, state } = this.#deps
    const node = caches.nodes.get({ name: nodeName })
    const claim = node === undefined ? undefined : state.claimOf(node)
    if (claim !== undefined) note(claim.metadata.name)
  }

  /** @param nodeName the node of a pod that changed. */
  async reconcile(nodeName: string): Promise<ReconcileResult> {
    const { caches, state } = this.#deps
    const unnoted = state.unnotedPodEvents
    const atMs = unnoted.get(nodeName)
    if (atMs === undefined) return done
    const node = caches.nodes.get({ name: nodeName })
    const claim = node === undefined ? undefined : state.claimOf(node)
    const last = claim?.status?.lastPodEventTime
    const isNoted = last !== undefined && atMs - Date.parse(last) < leastGapMs
    if (claim !== undefined && !isNoted) await this.#stamp(claim)
    if (unnoted.get(nodeName) === atMs) unnoted.delete(nodeName)
    // No change of the claim will tell that the node may be looked at again.
    if (isNoted) state.consolidation.bump()
    return done
  }

  /**
   * Notes that now is the time, and at once what follows for consolidation: two writes for each pod that comes
   * would be most of what a busy cluster costs.
   */
  async #stamp(claim: NodeClaim): Promise<void> {
    const lastPodEventTime = rfc3339(this.#deps.clock.now())
    const conditions = conditionsAfterPodEvent(this.#deps.caches, claim)
    const { resourceVersion } = claim.metadata
    if (conditions !== undefined && resourceVersion !== undefined) {
      const isWritten = await this.#write(claim, { lastPodEventTime, conditions }, resourceVersion)
      if (isWritten) return
    }
    await this.#write(claim, { lastPodEventTime })
  }

  /** @returns false when the claim has changed since it had `resourceVersion`. */
  async #write(claim: NodeClaim, status: object, resourceVersion?: string): Promise<boolean> {
    try {
      await this.#deps.client.patch(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        { status },
        {
          subresource: 'status',
          isAnswerUnread: true,
          ...(resourceVersion !== undefined && { resourceVersion }),
        },
      )
    } catch (error) {
      if (isKubeError(error, 'conflict') && resourceVersion !== undefined) return false
      if (!isKubeError(error, 'notFound')) throw error
    }
    return true
  }
}

/** Whether a change of a pod matters to its node: it was bound, ended, or began to end. */
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

/** Whether a pod event is that the pod has come to its node. */
function isArrival(change: Change<Pod>): boolean {
  const pod = change.object
  if (isTerminal(pod) || isTerminating(pod)) return false
  return (
    change.kind === 'added' || (change.kind === 'updated' && change.old.spec.nodeName !== pod.spec.nodeName)
  )
}

/** Whether a pod has ended, or begun to end, on a node. */
function isDeparture(change: Change<Pod>): boolean {
  const pod = change.object
  if ((pod.spec.nodeName ?? '') === '' || isDaemonPod(pod)) return false
  const isGoing = (each: Pod) => isTerminal(each) || isTerminating(each)
  if (change.kind === 'deleted') return !isGoing(pod)
  return change.kind === 'updated' && isGoing(pod) && !isGoing(change.old)
}

/**
 * When the pod was bound, ended or began to end, whichever is last, as far as it shows; so that a start,
 * which sees every pod for the first time, does not take what was noted long ago for news.
 */
function shownMs(pod: Pod): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata
  const { conditions = [], startTime } = pod.status ?? {}
  const scheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'True')
  const boundMs = Date.parse(scheduled?.lastTransitionTime ?? startTime ?? '')
  if (Number.isNaN(boundMs)) return undefined
  const leavesMs = Date.parse(deletionTimestamp ?? '') - 1000 * deletionGracePeriodSeconds
  const endedMs = isTerminal(pod) ? conditions.map((each) => Date.parse(each.lastTransitionTime ?? '')) : []
  return Math.max(boundMs, ...[leavesMs, ...endedMs].filter((ms) => !Number.isNaN(ms)))
}
