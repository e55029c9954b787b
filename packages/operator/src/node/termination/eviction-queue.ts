import { annotations, conditionOf, isConditionTrue, kinds, labels, type Pod } from '@tenon/api'
import { done, type EventInput, isKubeError, KubeError, type ReconcileResult } from '@tenon/kube'
import { type Clock, Listeners, rfc3339 } from '@tenon/runtime'
import { doNotDisrupt, isActive, isEvictable, isTerminating, keyOf } from '../../state/pods/pods.ts'
import { grantedSeconds, isForceEligible } from './drain.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly metrics: Metrics
  readonly clock: Clock
}

const backoff: ReconcileResult = { kind: 'backoff' }
/** How long the cache may take to show that a pod is terminating. */
const settleMs = 10_000

interface Entry {
  /** The pod, if the cache did not show it: drains also ask the API server for pods. */
  readonly unseen: Pod | undefined
  readonly uid: string
  deadlineMs: number
  /** Whether the deadline forces the pod. */
  isForced: boolean
  /** The last event about the pod's protection, to record each only once. */
  lastNotice: string
}

/**
 * Evicts pods of draining nodes as their PDBs allow, and deletes them when the deadline forces that (lifecycle.md 4.2). Keys
 * are `namespace/name`; evictions and deletions are by UID.
 */
export class EvictionQueue implements ControllerSpec {
  readonly name = 'eviction-queue'
  readonly concurrency = { least: 100, most: 5000 }
  readonly backoff = { baseMs: 100, capMs: 10_000 }
  readonly perSecond = 100
  readonly #deps: Dependencies
  readonly #entries = new Map<string, Entry>()
  /** When the cache shows that a pod is terminating, by UID of pods just evicted; oldest first. */
  readonly #evicted = new Map<string, number>()
  readonly #due = new Listeners<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Of two deadlines of a pod, the earlier counts. */
  add(pods: readonly Pod[], deadlineMs: number): void {
    this.#add(pods, deadlineMs, false)
  }

  /** Adds pods that the deadline forces. Those that are backing off are tried at once. */
  addForced(pods: readonly Pod[], deadlineMs: number): void {
    this.#add(pods, deadlineMs, true)
  }

  #add(pods: readonly Pod[], deadlineMs: number, isForced: boolean): void {
    this.#sweep()
    for (const pod of pods) {
      const key = keyOf(pod.metadata)
      const uid = pod.metadata.uid ?? ''
      if (this.#evicted.has(uid) && pod.metadata.deletionTimestamp === undefined) continue
      const known = this.#entries.get(key)
      if (known?.uid !== uid) {
        const unseen = this.#current(key)?.metadata.uid === uid ? undefined : pod
        this.#entries.set(key, { unseen, uid, deadlineMs, isForced, lastNotice: '' })
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
    this.#reportProtection(pod, entry, now)
    const pause = this.#pauseOf(pod)
    if (pause === 'keepsNode') return this.#drop(key, entry)
    if (pause === 'delaysPod' || !isEvictable(pod, now, this.#deps.state.windows)) return backoff
    return await this.#evict(pod, entry, key, signal)
  }

  /** Whether the pod is not evicted now because voluntary disruption is paused. */
  isPaused(pod: Pod): boolean {
    return this.#pauseOf(pod) !== undefined
  }

  #reportProtection(pod: Pod, entry: Entry, nowMs: number): void {
    const notice = protectionNotice(pod, nowMs)
    const text = notice === undefined ? '' : `${notice.reason}-${notice.dedupe.join('-')}`
    if (entry.lastNotice === text) return
    entry.lastNotice = text
    if (notice !== undefined) this.#deps.kubernetes.events.record({ object: pod, ...notice })
  }

  #current(key: string): Pod | undefined {
    const [namespace = '', name = ''] = key.split('/')
    return this.#deps.kubernetes.caches.pods.get({ namespace, name })
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, untilMs] of this.#evicted) {
      if (untilMs > now) return
      this.#evicted.delete(uid)
    }
  }

  /** The pod is terminating, or gone. */
  #leave(key: string, entry: Entry): ReconcileResult {
    this.#evicted.delete(entry.uid)
    this.#evicted.set(entry.uid, this.#deps.clock.now() + settleMs)
    return this.#drop(key, entry)
  }

  #drop(key: string, entry: Entry): ReconcileResult {
    // A pod of the same name may have taken its place.
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
    return done
  }

  async #evict(pod: Pod, entry: Entry, key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { kubernetes, metrics } = this.#deps
    const { client, events } = kubernetes
    try {
      await client.evict({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, entry.uid, {
        signal,
      })
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (error.status > 0) metrics.podsEvictionRequests.inc({ code: String(error.status) })
      // The cache is behind, and would show the pod again.
      if (error.kind === 'notFound') return this.#leave(key, entry)
      if (error.kind === 'conflict') return this.#drop(key, entry)
      const isMisconfigured = error.message.includes('more than one PodDisruptionBudget')
      // The event on the Node says what holds the pod.
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
    const { clock, kubernetes, metrics } = this.#deps
    const { client, events } = kubernetes
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
    // A terminating pod was counted when it was evicted.
    if (!isTerminating(pod)) metrics.podsDrained.inc({ reason: this.#reasonOf(pod) })
    return this.#leave(key, entry)
  }

  /**
   * What a pause of voluntary disruption means for the pod. A node that Tenon chose for disruption but has not deleted yet
   * is kept. If it is being deleted, which cannot be undone, its pods wait until the pause or their grace period ends.
   */
  #pauseOf(pod: Pod): 'keepsNode' | 'delaysPod' | undefined {
    const { kubernetes, state } = this.#deps
    const node = kubernetes.caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    const claim = node === undefined ? undefined : state.claimOf(node)
    if (claim === undefined) return undefined
    const isDeleted =
      claim.metadata.deletionTimestamp !== undefined || node?.metadata.deletionTimestamp !== undefined
    if (isDeleted && !isConditionTrue(claim, 'DisruptionReason')) return undefined
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    const isRepair = conditionOf(claim, 'DisruptionReason')?.reason === 'Unhealthy'
    if (state.brake.holding(pool, isRepair ? 'repair' : 'voluntary') === undefined) return undefined
    return isDeleted ? 'delaysPod' : 'keepsNode'
  }

  /** As in metric `karpenter_pods_drained_total`. */
  #reasonOf(pod: Pod): string {
    const node = this.#deps.kubernetes.caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    const claim = node === undefined ? undefined : this.#deps.state.claimOf(node)
    if (claim === undefined) return ''
    if (!isConditionTrue(claim, 'DisruptionReason')) return 'Forceful Termination'
    return conditionOf(claim, 'DisruptionReason')?.reason ?? ''
  }
}

type Notice = Omit<EventInput, 'object'> & { readonly dedupe: readonly string[] }

/**
 * The event about annotation `karpenter.sh/do-not-disrupt` of a pod, for its owner: that it is invalid, has ended, or until
 * when it protects the pod (lifecycle.md 4.4, disruption.md 18). Disruption windows protect too many pods for events.
 */
export function protectionNotice(pod: Pod, nowMs: number): Notice | undefined {
  const protection = doNotDisrupt(pod, nowMs)
  const { uid = '' } = pod.metadata
  const key = annotations.doNotDisrupt
  if (protection.kind === 'invalid') {
    return {
      type: 'Warning',
      reason: 'InvalidDoNotDisruptAnnotation',
      message: `Annotation ${key} "${protection.value}" is neither "true" nor a positive duration; it is ignored`,
      dedupe: [uid, protection.value],
    }
  }
  if (protection.kind === 'elapsed') {
    return {
      type: 'Normal',
      reason: 'DoNotDisruptGracePeriodElapsed',
      message: `The time for which ${key} protects the pod is over`,
      dedupe: [uid],
    }
  }
  if (protection.kind !== 'active' || !Number.isFinite(protection.untilMs)) return undefined
  const until = rfc3339(protection.untilMs)
  return {
    type: 'Normal',
    reason: 'DoNotDisruptUntil',
    message: `${key} protects the pod until ${until}`,
    dedupe: [uid, until],
  }
}
