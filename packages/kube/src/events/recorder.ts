import { kinds, type ResourceType } from '@tenon/api'
import {
  type Clock,
  currentTrace,
  inLogScope,
  type Logger,
  type Random,
  rfc3339,
  type TraceContext,
} from '@tenon/runtime'
import { type EventInput, type EventRecorder, isKubeError, type KubeClient } from '../contract.ts'
import { type Rate, TokenBucket } from '../token-bucket.ts'
import { BoundedMap } from './bounded-map.ts'
import { Correlator } from './correlator.ts'
import { cut, eventObject, type EventObject, traceAnnotations } from './event-object.ts'
import { OpenWindows } from './open-windows.ts'

export interface EventRecorderOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly logger: Logger
  readonly random: Random
  /** The `source.component` of events; default `karpenter`. */
  readonly component?: string
  /** Token buckets shared by all events of a reason. By default only `Nominated` has one. */
  readonly rates?: Readonly<Record<string, Rate>>
  /** Token bucket of each object; default: a burst of 25, then one per five minutes. */
  readonly perObject?: Rate
}

/** A recorder that can be flushed at shutdown. */
export interface FlushableEventRecorder extends EventRecorder {
  /** Resolves when everything recorded so far was written or dropped. */
  flush(): Promise<void>
}

const defaultDedupeMs = 2 * 60_000
const queueLimit = 1000
const cacheLimit = 4096
const attemptPausesMs = [1000, 5000]

const noFields = () => ({})

const eventType = kinds.event as ResourceType<EventObject>

/** Drops events in three stages: by dedupe key, by shared rate, and by object. */
export function createEventRecorder(options: EventRecorderOptions): FlushableEventRecorder {
  return new QueuedRecorder(options)
}

/** An event and its circumstances. */
interface Recorded {
  readonly event: EventInput
  readonly atMs: number
  readonly trace: TraceContext | undefined
}

interface Written {
  readonly name: string
  readonly namespace: string
  count: number
}

class QueuedRecorder implements FlushableEventRecorder {
  readonly #options: EventRecorderOptions
  readonly #correlator: Correlator
  readonly #windows: OpenWindows
  readonly #written = new BoundedMap<Written>(cacheLimit)
  readonly #rates: ReadonlyMap<string, TokenBucket>
  readonly #queue: Recorded[] = []
  #working: Promise<void> | undefined

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#correlator = new Correlator(options.clock, options.perObject)
    this.#windows = new OpenWindows(options.clock)
    const rates = options.rates ?? { Nominated: { perSecond: 5, burst: 10 } }
    this.#rates = new Map(
      Object.entries(rates).map(([reason, rate]) => [reason, new TokenBucket(rate, options.clock)]),
    )
  }

  record(event: EventInput): void {
    if (this.#isDuplicate(event)) return
    if (this.#rates.get(event.reason)?.tryTake() === false) return
    if (this.#queue.length >= queueLimit) {
      this.#options.logger.debug('event dropped, too many are waiting', { reason: event.reason })
      return
    }
    this.#queue.push({ event, atMs: this.#options.clock.now(), trace: currentTrace() })
    // Events that come later belong to other operations.
    this.#working ??= inLogScope(noFields, () => this.#work())
  }

  async flush(): Promise<void> {
    await this.#working
  }

  /** The window starts at the first event, even if a later stage drops that one. */
  #isDuplicate({ reason, dedupe = [], dedupeTtlMs = defaultDedupeMs }: EventInput): boolean {
    if (dedupe.length === 0) return false
    return !this.#windows.open(`${reason.toLowerCase()}-${dedupe.join('-')}`, dedupeTtlMs)
  }

  /** Never rejects. Writes one event at a time, so that counts are right. */
  async #work(): Promise<void> {
    // Let the caller continue before the queue is read.
    await Promise.resolve()
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      try {
        await this.#write(next)
      } catch (error) {
        this.#options.logger.debug('event not written', { reason: next.event.reason, error })
      }
    }
    this.#working = undefined
  }

  async #write({ event, atMs, trace }: Recorded): Promise<void> {
    const correlation = this.#correlator.correlate(event)
    if (correlation.kind === 'drop') return
    const { key, message } = correlation
    const written = this.#written.get(key)
    if (written !== undefined && (await this.#count(written, message, atMs, trace))) return
    const { component = 'karpenter', random } = this.#options
    const object = eventObject({ ...event, message }, { component, nowMs: atMs, random, trace })
    await this.#patiently(() => this.#create(object))
    this.#written.set(key, { ...object.metadata, count: 1 })
  }

  async #create(object: EventObject): Promise<void> {
    try {
      await this.#options.client.create(eventType, object)
    } catch (error) {
      // A retry of an attempt that had succeeded.
      if (!isKubeError(error, 'alreadyExists')) throw error
    }
  }

  /** Increments an event that was written before; returns false if the server has deleted it. */
  async #count(
    written: Written,
    message: string,
    atMs: number,
    trace: TraceContext | undefined,
  ): Promise<boolean> {
    const { name, namespace } = written
    const annotations = traceAnnotations(trace)
    const patch = {
      count: written.count + 1,
      lastTimestamp: rfc3339(atMs),
      message: cut(message, 1024),
      ...(annotations && { metadata: { annotations } }),
    }
    try {
      await this.#patiently(() => this.#options.client.patch(eventType, { name, namespace }, patch))
    } catch (error) {
      if (isKubeError(error, 'notFound')) return false
      throw error
    }
    written.count++
    return true
  }

  async #patiently<T>(attempt: () => Promise<T>): Promise<T> {
    for (const pauseMs of attemptPausesMs) {
      try {
        return await attempt()
      } catch (error) {
        if (!isKubeError(error, 'transport', 'server', 'tooManyRequests')) throw error
        await this.#options.clock.sleep(pauseMs)
      }
    }
    return attempt()
  }
}
