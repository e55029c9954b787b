/** Evicts pods of draining nodes within their PDBs, and by force past the deadline (lifecycle.md 4.2). */
import { annotations, conditionOf, isConditionTrue, kinds, type Pod } from '@tenon/api'
import { done, isKubeError, KubeError, type ReconcileResult } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import type { OperatorContext } from '../../context.ts'
import { doNotDisrupt, isActive, isEvictable, keyOf } from '../../state/pods.ts'

const backoff: ReconcileResult = { kind: 'backoff' }
/** For so long a pod that was told to go is not told again: the cache may not show it yet. */
const settleMs = 10_000

interface Entry {
  readonly uid: string
  readonly deadlineMs: number
}

/** Seconds a pod gets that is deleted for the deadline; never 0, which would skip its kubelet. */
const grantedSeconds = (deadlineMs: number, nowMs: number) =>
  Math.max(Math.floor((deadlineMs - nowMs) / 1000), 1)

/**
 * Whether the deadline leaves the pod less than its own grace period (lifecycle.md 4.3). A pod that
 * ends no earlier for being deleted again is left alone.
 */
export function isForceEligible(pod: Pod, deadlineMs: number, nowMs: number): boolean {
  if (!Number.isFinite(deadlineMs)) return false
  if (pod.metadata.deletionTimestamp !== undefined) {
    const endsMs = Date.parse(pod.metadata.deletionTimestamp)
    return endsMs > deadlineMs && endsMs > nowMs + grantedSeconds(deadlineMs, nowMs) * 1000
  }
  const grace = pod.spec.terminationGracePeriodSeconds
  return grace !== undefined && nowMs > deadlineMs - grace * 1000
}

/** Pods waiting for their eviction; keys are `namespace/name`, guarded by UID. */
export class EvictionQueue {
  readonly #context: OperatorContext
  readonly #entries = new Map<string, Entry>()
  /** When to believe the cache again about pods that were told to go, by UID; oldest first. */
  readonly #told = new Map<string, number>()
  /** Set by the composition root: asks the controller to work on a key. */
  enqueue: (key: string) => void = () => undefined

  constructor(context: OperatorContext) {
    this.#context = context
  }

  /** Adds pods; of two deadlines the earlier holds. Infinity means none. */
  add(pods: readonly Pod[], deadlineMs: number): void {
    this.#sweep()
    for (const pod of pods) {
      const key = keyOf(pod.metadata)
      const uid = pod.metadata.uid ?? ''
      if (this.#told.has(uid) && pod.metadata.deletionTimestamp === undefined) continue
      const known = this.#entries.get(key)
      if (known?.uid === uid) {
        if (deadlineMs < known.deadlineMs) this.#entries.set(key, { uid, deadlineMs })
        continue
      }
      this.#entries.set(key, { uid, deadlineMs })
      this.enqueue(key)
    }
  }

  /** How many pods wait. */
  get size(): number {
    return this.#entries.size
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const entry = this.#entries.get(key)
    if (entry === undefined) return done
    const [namespace = '', name = ''] = key.split('/')
    const pod = this.#context.caches.pods.get({ namespace, name })
    if (pod === undefined || pod.metadata.uid !== entry.uid) return this.#drop(key, entry)
    const now = this.#context.clock.now()
    if (isForceEligible(pod, entry.deadlineMs, now)) return await this.#forceDelete(pod, entry, key)
    if (!isActive(pod)) return this.#drop(key, entry)
    this.#tellDoNotDisrupt(pod, now)
    if (!isEvictable(pod, now)) return backoff
    return await this.#evict(pod, entry, key, signal)
  }

  /** Says what annotation `karpenter.sh/do-not-disrupt` does to the pod (lifecycle.md 4.4). */
  #tellDoNotDisrupt(pod: Pod, nowMs: number): void {
    const protection = doNotDisrupt(pod, nowMs)
    const { uid = '' } = pod.metadata
    const key = annotations.doNotDisrupt
    if (protection.kind === 'invalid') {
      this.#context.events.record({
        object: pod,
        type: 'Warning',
        reason: 'InvalidDoNotDisruptAnnotation',
        message: `Annotation ${key} "${protection.value}" is neither "true" nor a positive duration; it is ignored`,
        dedupe: [uid, protection.value],
      })
    } else if (protection.kind === 'elapsed') {
      this.#context.events.record({
        object: pod,
        type: 'Normal',
        reason: 'DoNotDisruptGracePeriodElapsed',
        message: `The time for which ${key} protects the pod is over`,
        dedupe: [uid],
      })
    } else if (protection.kind === 'active' && Number.isFinite(protection.untilMs)) {
      const until = rfc3339(protection.untilMs)
      this.#context.events.record({
        object: pod,
        type: 'Normal',
        reason: 'DoNotDisruptUntil',
        message: `${key} protects the pod until ${until}`,
        dedupe: [uid, until],
      })
    }
  }

  #sweep(): void {
    const now = this.#context.clock.now()
    for (const [uid, untilMs] of this.#told) {
      if (untilMs > now) return
      this.#told.delete(uid)
    }
  }

  /** The pod was told to go. */
  #leave(key: string, entry: Entry): ReconcileResult {
    this.#told.delete(entry.uid)
    this.#told.set(entry.uid, this.#context.clock.now() + settleMs)
    return this.#drop(key, entry)
  }

  #drop(key: string, entry: Entry): ReconcileResult {
    // By UID: a deadline that became tighter meanwhile has replaced the entry, not the pod.
    if (this.#entries.get(key)?.uid === entry.uid) this.#entries.delete(key)
    return done
  }

  async #evict(pod: Pod, entry: Entry, key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, metrics, events } = this.#context
    try {
      await client.evict({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, entry.uid, {
        signal,
      })
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (error.status > 0) metrics.podsEvictionRequests.inc({ code: String(error.status) })
      if (error.kind === 'notFound' || error.kind === 'conflict') return this.#drop(key, entry)
      const isMisconfigured = error.message.includes('more than one PodDisruptionBudget')
      if (error.kind !== 'tooManyRequests' && !isMisconfigured) throw error
      this.#blocked(pod, isMisconfigured)
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
    const { client, clock, events, metrics } = this.#context
    const grace = grantedSeconds(entry.deadlineMs, clock.now())
    events.record({
      object: pod,
      type: 'Normal',
      reason: 'Disrupted',
      message: `Deleting the pod so that its node ends by ${rfc3339(entry.deadlineMs)}; it gets ${grace}s of its ${pod.spec.terminationGracePeriodSeconds ?? 0}s, whatever its PDBs and karpenter.sh/do-not-disrupt say`,
      dedupe: [pod.metadata.name],
    })
    try {
      await client.delete(
        kinds.pod,
        { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name },
        { gracePeriodSeconds: grace, preconditionUid: entry.uid },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound', 'conflict')) throw error
      return this.#drop(key, entry)
    }
    metrics.podsDrained.inc({ reason: this.#reasonOf(pod) })
    return this.#leave(key, entry)
  }

  #blocked(pod: Pod, isMisconfigured: boolean): void {
    const node = this.#context.caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    if (node === undefined) return
    const why = isMisconfigured
      ? 'several PodDisruptionBudgets cover the pod, which evictions do not allow'
      : 'a PodDisruptionBudget does not allow it now'
    this.#context.events.record({
      object: node,
      type: 'Warning',
      reason: 'FailedDraining',
      message: `Could not evict a pod: ${why} (Pod=${keyOf(pod.metadata)})`,
      dedupe: [node.metadata.name],
    })
  }

  /** Why the pod's node goes, as in metric `karpenter_pods_drained_total`. */
  #reasonOf(pod: Pod): string {
    const node = this.#context.caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    const claim = node === undefined ? undefined : this.#context.state.claimOf(node)
    if (claim === undefined) return ''
    if (!isConditionTrue(claim, 'DisruptionReason')) return 'Forceful Termination'
    return conditionOf(claim, 'DisruptionReason')?.reason ?? ''
  }
}
