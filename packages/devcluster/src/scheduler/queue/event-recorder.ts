import { type KubeObject, kinds } from '@tenon/api'
import { type Clock, type Random, randomString, rfc3339 } from '@tenon/runtime'
import { ApiError, type LocalApi } from '../../contract.ts'

/** The content of an Event. */
export interface RecordedEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

interface KnownEvent {
  readonly namespace: string
  readonly name: string
  count: number
}

const keptEvents = 4096

/**
 * Writes Events, and increments the count of repeated ones. A token bucket limits the writes; excess events are
 * dropped, like by real recorders, so that they never slow the cluster down.
 */
export class EventRecorder {
  readonly #api: LocalApi
  readonly #clock: Clock
  readonly #random: Random
  readonly #component: string
  readonly #perSecond: number
  readonly #burst: number
  readonly #known = new Map<string, KnownEvent>()
  #tokens: number
  #filledAt: number

  constructor(
    capabilities: { readonly api: LocalApi; readonly clock: Clock; readonly random: Random },
    component: string,
    limits: { readonly perSecond: number; readonly burst: number },
  ) {
    this.#api = capabilities.api
    this.#clock = capabilities.clock
    this.#random = capabilities.random
    this.#component = component
    this.#perSecond = limits.perSecond
    this.#burst = limits.burst
    this.#tokens = limits.burst
    this.#filledAt = capabilities.clock.monotonic()
  }

  /** Records an event; a refused write is dropped. */
  record(object: KubeObject, event: RecordedEvent): void {
    if (!this.#takeToken()) return
    try {
      this.#write(object, event)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }

  #write(object: KubeObject, event: RecordedEvent): void {
    const { uid, name, namespace = 'default' } = object.metadata
    const key = `${uid ?? `${namespace}/${name}`}\n${event.reason}\n${event.message}`
    const now = rfc3339(this.#clock.now())
    const known = this.#known.get(key)
    if (known !== undefined && this.#api.get(kinds.event, known.namespace, known.name) !== undefined) {
      known.count++
      this.#api.patch(kinds.event, known.namespace, known.name, { count: known.count, lastTimestamp: now })
      return
    }
    const created: KnownEvent = { namespace, name: `${name}.${this.#suffix()}`, count: 1 }
    this.#api.create<KubeObject>(kinds.event, this.#eventObject(object, event, created, now))
    if (this.#known.size >= keptEvents) this.#known.clear()
    this.#known.set(key, created)
  }

  #eventObject(object: KubeObject, event: RecordedEvent, at: KnownEvent, now: string): KubeObject {
    const { uid, name, namespace, resourceVersion } = object.metadata
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: at.name, namespace: at.namespace },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
      ...event,
      source: { component: this.#component },
      reportingComponent: this.#component,
      reportingInstance: '',
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    }
    return body
  }

  #suffix(): string {
    return randomString(this.#random, 16, '0123456789abcdef')
  }

  #takeToken(): boolean {
    const now = this.#clock.monotonic()
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond)
    this.#filledAt = now
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
