import type { Clock } from '@tenon/runtime'
import { Heap } from './heap.ts'
import type { FilterName, PodFacts } from '@tenon/filters'

/** Changes of the cluster that can make an unschedulable pod schedulable. */
export type ClusterEvent =
  | 'nodeChanged'
  | 'podRemoved'
  | 'podAdded'
  | 'volumeChanged'
  | 'deviceChanged'
  | 'deviceClassChanged'
  | 'namespaceChanged'

const helpedBy: Readonly<Record<FilterName, readonly ClusterEvent[]>> = {
  NodeUnschedulable: ['nodeChanged'],
  NodeName: ['nodeChanged'],
  TaintToleration: ['nodeChanged'],
  NodeAffinity: ['nodeChanged'],
  NodeDeclaredFeatures: ['nodeChanged'],
  NodePorts: ['nodeChanged', 'podRemoved'],
  // A class may serve an extended resource that no node has.
  NodeResourcesFit: ['nodeChanged', 'podRemoved', 'deviceClassChanged'],
  VolumeRestrictions: ['nodeChanged', 'podRemoved', 'volumeChanged'],
  NodeVolumeLimits: ['nodeChanged', 'podRemoved', 'volumeChanged'],
  VolumeBinding: ['nodeChanged', 'volumeChanged'],
  VolumeZone: ['nodeChanged', 'volumeChanged'],
  DynamicResources: ['nodeChanged', 'deviceChanged', 'deviceClassChanged'],
  PodTopologySpread: ['nodeChanged', 'podRemoved', 'podAdded'],
  InterPodAffinity: ['nodeChanged', 'podRemoved', 'podAdded', 'namespaceChanged'],
  Extra: ['nodeChanged', 'podRemoved', 'podAdded'],
}

/** A pending pod in the queue. */
export interface QueuedPod {
  facts: PodFacts
  /** `aside`: it is retried with its PodGroup. */
  place: 'active' | 'backoff' | 'unschedulable' | 'aside' | 'taken' | 'gone'
  /** Whether it only waits for its back-off, and may be tried before. */
  mayBeEarly: boolean
  /** Attempts without a node. */
  attempts: number
  /** When it was enqueued or last failed. */
  since: number
  /** When its back-off ends. */
  readyAt: number
  readonly order: number
  /** Rules that rejected it last; empty if there were no nodes. */
  rejectedBy: ReadonlySet<FilterName>
}

interface ActiveItem {
  readonly priority: number
  readonly since: number
  readonly queued: QueuedPod
}

export interface QueueSettings {
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** Pods are retried after this time even without an event. */
  readonly unschedulableFlushMs: number
}

const flushEveryMs = 30_000

/**
 * Pending pods: active ones by priority and age; failed ones wait for an event that can help them, and then for the end
 * of their back-off.
 */
export class SchedulingQueue {
  readonly #clock: Clock
  readonly #settings: QueueSettings
  readonly #onReady: () => void
  readonly #pods = new Map<string, QueuedPod>()
  readonly #unschedulable = new Set<QueuedPod>()
  readonly #active = new Heap<ActiveItem>(goesFirst)
  readonly #backoff = new Heap<{ readonly at: number; readonly queued: QueuedPod }>((a, b) => a.at < b.at)
  #order = 0
  #cancelBackoff: (() => void) | undefined
  #backoffAt = Number.POSITIVE_INFINITY
  #cancelFlush: (() => void) | undefined

  /** @param onReady called when an active pod is waiting. */
  constructor(clock: Clock, settings: QueueSettings, onReady: () => void) {
    this.#clock = clock
    this.#settings = settings
    this.#onReady = onReady
  }

  get(uid: string): QueuedPod | undefined {
    return this.#pods.get(uid)
  }

  add(facts: PodFacts): void {
    const since = this.#clock.now()
    const queued: QueuedPod = {
      facts,
      place: 'active',
      mayBeEarly: false,
      attempts: 0,
      since,
      readyAt: since,
      order: this.#order++,
      rejectedBy: new Set(),
    }
    this.#pods.set(facts.uid, queued)
    this.#activate(queued)
  }

  /** Updates a pod; retries it if `retry`. */
  update(queued: QueuedPod, facts: PodFacts, retry: boolean): void {
    const reordered = queued.place === 'active' && facts.priority !== queued.facts.priority
    queued.facts = facts
    if (reordered) this.#activate(queued)
    if (retry && queued.place === 'unschedulable') this.#release(queued)
  }

  remove(uid: string): void {
    const queued = this.#pods.get(uid)
    if (queued === undefined) return
    this.#pods.delete(uid)
    this.#unschedulable.delete(queued)
    queued.place = 'gone'
  }

  /** The next pod to try. */
  pop(): QueuedPod | undefined {
    for (;;) {
      const item = this.#active.pop()
      if (item === undefined) return undefined
      // A pod that was activated twice (its priority changed) is in the heap twice.
      if (item.queued.place !== 'active') continue
      item.queued.place = 'taken'
      return item.queued
    }
  }

  /** The first pod whose back-off is not over yet. */
  popEarly(): QueuedPod | undefined {
    for (let next = this.#backoff.peek(); next !== undefined; next = this.#backoff.peek()) {
      const { queued } = next
      if (queued.place === 'backoff' && !queued.mayBeEarly) return undefined
      this.#backoff.pop()
      if (queued.place !== 'backoff') continue
      queued.place = 'taken'
      return queued
    }
    return undefined
  }

  /** Takes a pod out of the queue, to try it. */
  take(queued: QueuedPod): void {
    this.#unschedulable.delete(queued)
    queued.place = 'taken'
  }

  /** Leaves a tried pod to its PodGroup, which is retried as a whole. */
  leaveToGroup(queued: QueuedPod): void {
    this.#failed(queued)
    queued.place = 'aside'
  }

  /** Puts a tried pod aside until an event can help it. */
  setAside(queued: QueuedPod, rejectedBy: ReadonlySet<FilterName>): void {
    this.#failed(queued)
    queued.rejectedBy = rejectedBy
    queued.place = 'unschedulable'
    this.#unschedulable.add(queued)
    this.#cancelFlush ??= this.#clock.after(flushEveryMs, () => this.#flush())
  }

  /** Retries a pod after its back-off, as the attempt failed for a reason outside the rules. */
  retryLater(queued: QueuedPod): void {
    this.#failed(queued)
    this.#backOff(queued, false)
  }

  /** Activates the pods that one of these events can help, if `helps` agrees. */
  wake(events: ReadonlySet<ClusterEvent>, helps: (queued: QueuedPod, event: ClusterEvent) => boolean): void {
    const all = [...events]
    for (const queued of this.#unschedulable) {
      const filters = [...queued.rejectedBy]
      const helped = all.some(
        (event) =>
          (filters.length === 0 || filters.some((filter) => helpedBy[filter].includes(event))) &&
          helps(queued, event),
      )
      if (helped) this.#release(queued)
    }
  }

  stop(): void {
    this.#cancelBackoff?.()
    this.#cancelFlush?.()
  }

  #failed(queued: QueuedPod): void {
    const { initialBackoffMs, maxBackoffMs } = this.#settings
    queued.attempts++
    queued.since = this.#clock.now()
    queued.readyAt = queued.since + Math.min(maxBackoffMs, initialBackoffMs * 2 ** (queued.attempts - 1))
  }

  #release(queued: QueuedPod): void {
    this.#unschedulable.delete(queued)
    if (queued.readyAt > this.#clock.now()) this.#backOff(queued, true)
    else this.#activate(queued)
  }

  #activate(queued: QueuedPod): void {
    queued.place = 'active'
    this.#active.push({ priority: queued.facts.priority, since: queued.since, queued })
    this.#onReady()
  }

  #backOff(queued: QueuedPod, mayBeEarly: boolean): void {
    queued.place = 'backoff'
    queued.mayBeEarly = mayBeEarly
    this.#backoff.push({ at: queued.readyAt, queued })
    this.#armBackoff()
  }

  #armBackoff(): void {
    const next = this.#backoff.peek()
    if (next === undefined || next.at >= this.#backoffAt) return
    this.#cancelBackoff?.()
    this.#backoffAt = next.at
    this.#cancelBackoff = this.#clock.after(next.at - this.#clock.now(), () => this.#backoffOver())
  }

  #backoffOver(): void {
    const now = this.#clock.now()
    this.#backoffAt = Number.POSITIVE_INFINITY
    for (let next = this.#backoff.peek(); next !== undefined && next.at <= now; next = this.#backoff.peek()) {
      this.#backoff.pop()
      if (next.queued.place === 'backoff') this.#activate(next.queued)
    }
    this.#armBackoff()
  }

  #flush(): void {
    const oldest = this.#clock.now() - this.#settings.unschedulableFlushMs
    for (const queued of this.#unschedulable) if (queued.since <= oldest) this.#release(queued)
    this.#cancelFlush =
      this.#unschedulable.size === 0 ? undefined : this.#clock.after(flushEveryMs, () => this.#flush())
  }
}

function goesFirst(a: ActiveItem, b: ActiveItem): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority
  return a.since === b.since ? a.queued.order < b.queued.order : a.since < b.since
}
