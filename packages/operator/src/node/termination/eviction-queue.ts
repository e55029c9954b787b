/** Evicts pods of draining nodes within their PDBs, and by force past the deadline (lifecycle.md 4.2). */
import { conditionOf, isConditionTrue, kinds, labels, type Pod } from '@tenon/api'
import {
  done,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  KubeError,
  type ReconcileResult,
} from '@tenon/kube'
import { type Clock, Listeners, rfc3339 } from '@tenon/runtime'
import { protectionNotice } from '../protection-notice.ts'
import { isActive, isEvictable, isTerminating, keyOf } from '../../state/pods/pods.ts'
import { grantedSeconds, isForceEligible } from './force.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'delete' | 'evict'>
  readonly caches: Pick<Caches, 'nodes' | 'pods'>
  readonly state: Pick<ClusterState, 'brake' | 'claimOf'>
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'podsDrained' | 'podsEvictionRequests'>
  readonly clock: Clock
}

const backoff: ReconcileResult = { kind: 'backoff' }
/** For so long a pod that was told to go is not told again: the cache may not show it yet. */
const settleMs = 10_000

interface Entry {
  /** The pod, where the cache did not show it: whether a drain is over is asked of the API server. */
  readonly unseen: Pod | undefined
  readonly uid: string
  deadlineMs: number
  /** Whether the deadline has overtaken what protects the pod. */
  isForced: boolean
  /** What the pod was told about its protection. */
  said: string
}

/** Pods waiting for their eviction; keys are `namespace/name`, guarded by UID. */
export class EvictionQueue implements ControllerSpec {
  readonly name = 'eviction-queue'
  readonly concurrency = { least: 100, most: 5000 }
  readonly backoff = { baseMs: 100, capMs: 10_000 }
  readonly perSecond = 100
  readonly #deps: Dependencies
  readonly #entries = new Map<string, Entry>()
  /** When to believe the cache again about pods that were told to go, by UID; oldest first. */
  readonly #told = new Map<string, number>()
  /** Keys that are to be worked on now. */
  readonly #due = new Listeners<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Adds pods; of two deadlines the earlier holds. Infinity means none. */
  add(pods: readonly Pod[], deadlineMs: number): void {
    this.#add(pods, deadlineMs, false)
  }

  /** Adds pods to be deleted for the deadline: those that back off already are woken, once. */
  addForced(pods: readonly Pod[], deadlineMs: number): void {
    this.#add(pods, deadlineMs, true)
  }

  #add(pods: readonly Pod[], deadlineMs: number, isForced: boolean): void {
    this.#sweep()
    for (const pod of pods) {
      const key = keyOf(pod.metadata)
      const uid = pod.metadata.uid ?? ''
      if (this.#told.has(uid) && pod.metadata.deletionTimestamp === undefined) continue
      const known = this.#entries.get(key)
      if (known?.uid !== uid) {
        const unseen = this.#current(key)?.metadata.uid === uid ? undefined : pod
        this.#entries.set(key, { unseen, uid, deadlineMs, isForced, said: '' })
        this.#due.notify(key)
        continue
      }
      known.deadlineMs = Math.min(known.deadlineMs, deadlineMs)
      if (!isForced || known.isForced) continue
      known.isForced = true
      this.#due.notify(key)
    }
  }

  watch(enqueue: Enqueue): void {
    this.#due.add(enqueue)
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const entry = this.#entries.get(key)
    if (entry === undefined) return done
    const current = this.#current(key)
    const pod = current?.metadata.uid === entry.uid ? current : entry.unseen
    if (pod === undefined) return this.#drop(key, entry)
    const now = this.#deps.clock.now()
    if (isForceEligible(pod, entry.deadlineMs, now)) return await this.#forceDelete(pod, entry, key)
    if (!isActive(pod)) return this.#drop(key, entry)
    this.#tellDoNotDisrupt(pod, entry, now)
    const held = this.#heldFor(pod)
    if (held === 'stays') return this.#drop(key, entry)
    if (held === 'waits' || !isEvictable(pod, now)) return backoff
    return await this.#evict(pod, entry, key, signal)
  }

  /**
   * Says what annotation `karpenter.sh/do-not-disrupt` does to the pod (lifecycle.md 4.4): once, as a
   * thousand protected pods that back off would otherwise repeat it for as long as the drain lasts.
   */
  #tellDoNotDisrupt(pod: Pod, entry: Entry, nowMs: number): void {
    const notice = protectionNotice(pod, nowMs)
    const said = notice === undefined ? '' : `${notice.reason}-${notice.dedupe.join('-')}`
    if (entry.said === said) return
    entry.said = said
    if (notice !== undefined) this.#deps.events.record({ object: pod, ...notice })
  }

  #current(key: string): Pod | undefined {
    const [namespace = '', name = ''] = key.split('/')
    return this.#deps.caches.pods.get({ namespace, name })
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, untilMs] of this.#told) {
      if (untilMs > now) return
      this.#told.delete(uid)
    }
  }

  /** The pod was told to go, or has gone already. */
  #leave(key: string, entry: Entry): ReconcileResult {
    this.#told.delete(entry.uid)
    this.#told.set(entry.uid, this.#deps.clock.now() + settleMs)
    return this.#drop(key, entry)
  }

  #drop(key: string, entry: Entry): ReconcileResult {
    // A pod of the same name may have taken its place.
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
    return done
  }

  async #evict(pod: Pod, entry: Entry, key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, metrics, events } = this.#deps
    try {
      await client.evict({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, entry.uid, {
        signal,
      })
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (error.status > 0) metrics.podsEvictionRequests.inc({ code: String(error.status) })
      // The cache is behind: asking again at once would find the same.
      if (error.kind === 'notFound') return this.#leave(key, entry)
      if (error.kind === 'conflict') return this.#drop(key, entry)
      const isMisconfigured = error.message.includes('more than one PodDisruptionBudget')
      // What holds the pod is in the report of its drain, and in the event on its Node.
      if (error.kind !== 'tooManyRequests' && !isMisconfigured) throw error
      return backoff
    }
    metrics.podsEvictionRequests.inc({ code: '200' })
    const reason = this.#reasonOf(pod)
    metrics.podsDrained.inc({ reason })
    events.record({
      object: pod,
      type: 'Normal',
      reason: 'Evicted',
      message: reason === '' ? 'Evicted pod' : `Evicted pod: ${reason}`,
      dedupe: [pod.metadata.name],
    })
    return this.#leave(key, entry)
  }

  async #forceDelete(pod: Pod, entry: Entry, key: string): Promise<ReconcileResult> {
    const { client, clock, events, metrics } = this.#deps
    const grace = grantedSeconds(entry.deadlineMs, clock.now())
    try {
      await client.delete(
        kinds.pod,
        { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name },
        { gracePeriodSeconds: grace, preconditionUid: entry.uid },
      )
    } catch (error) {
      if (isKubeError(error, 'notFound')) return this.#leave(key, entry)
      if (!isKubeError(error, 'conflict')) throw error
      return this.#drop(key, entry)
    }
    events.record({
      object: pod,
      type: 'Normal',
      reason: 'Disrupted',
      message: `Deleting the pod so that its node ends by ${rfc3339(entry.deadlineMs)}; it gets ${grace}s of its ${pod.spec.terminationGracePeriodSeconds ?? 0}s, whatever its PDBs and karpenter.sh/do-not-disrupt say`,
      dedupe: [pod.metadata.name],
    })
    // One that was told to go before was counted then.
    if (!isTerminating(pod)) metrics.podsDrained.inc({ reason: this.#reasonOf(pod) })
    return this.#leave(key, entry)
  }

  /**
   * Whether a pause keeps the pod where it is: its node goes by Tenon's own wish, or was to. Such a node that is
   * being deleted cannot be kept any more; its pods wait for the end of the pause, or of their grace period.
   */
  #heldFor(pod: Pod): 'stays' | 'waits' | undefined {
    const { caches, state } = this.#deps
    const node = caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    const claim = node === undefined ? undefined : state.claimOf(node)
    if (claim === undefined) return undefined
    const isDeleted =
      claim.metadata.deletionTimestamp !== undefined || node?.metadata.deletionTimestamp !== undefined
    if (isDeleted && !isConditionTrue(claim, 'DisruptionReason')) return undefined
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    if (state.brake.holding(pool, 'voluntary') === undefined) return undefined
    return isDeleted ? 'waits' : 'stays'
  }

  /** Why the pod's node goes, as in metric `karpenter_pods_drained_total`. */
  #reasonOf(pod: Pod): string {
    const node = this.#deps.caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    const claim = node === undefined ? undefined : this.#deps.state.claimOf(node)
    if (claim === undefined) return ''
    if (!isConditionTrue(claim, 'DisruptionReason')) return 'Forceful Termination'
    return conditionOf(claim, 'DisruptionReason')?.reason ?? ''
  }
}
