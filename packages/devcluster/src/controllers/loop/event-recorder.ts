import { kinds, type KubeObject } from '@tenon/api'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { LocalApi } from '../../contract.ts'

interface EventObject extends KubeObject {
  readonly [field: string]: unknown
}

/** The content of an Event. */
interface EventContent {
  readonly component: string
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

interface Recorded {
  readonly namespace: string
  readonly name: string
  count: number
}

interface Group {
  readonly messages: Set<string>
  sinceMs: number
}

interface Bucket {
  tokens: number
  refilledMs: number
}

/** Distinct messages with one reason about one object before they are combined. */
const similarLimit = 10
const similarWindowMs = 600_000
/** Burst of Events of one component about one object, and its refill rate. */
const burst = 25
const refillMs = 300_000
const remembered = 4_096

/**
 * Records Events for `kubectl describe` and `kubectl events`. Repetitions increment the count of one Event; floods
 * about one object are combined and then dropped.
 */
export class EventRecorder {
  readonly #api: LocalApi
  readonly #clock: Clock
  readonly #log: Logger
  readonly #isWriting: boolean
  readonly #recorded = new Map<string, Recorded>()
  readonly #groups = new Map<string, Group>()
  readonly #buckets = new Map<string, Bucket>()
  #serial = 0

  /** @param isWriting whether Events are written at all. */
  constructor(api: LocalApi, clock: Clock, log: Logger, isWriting: boolean = true) {
    this.#isWriting = isWriting
    this.#api = api
    this.#clock = clock
    this.#log = log
  }

  /** @param component the controller's name in Events, such as `deployment-controller`. */
  record(
    component: string,
    about: KubeObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ): void {
    if (!this.#isWriting) return
    const subject = `${component}|${about.kind}|${about.metadata.uid ?? about.metadata.name}`
    if (!this.#allowed(subject)) return
    const text = this.#combined(`${subject}|${type}|${reason}`, message)
    const id = `${subject}|${type}|${reason}|${text === message ? message : ''}`
    try {
      this.#write(id, about, { component, type, reason, message: text })
    } catch (error) {
      this.#log.debug('event not recorded', { reason, object: about.metadata.name, error })
    }
  }

  #allowed(subject: string): boolean {
    const now = this.#clock.monotonic()
    const bucket = this.#buckets.get(subject) ?? { tokens: burst, refilledMs: now }
    const refill = Math.floor((now - bucket.refilledMs) / refillMs)
    if (refill > 0) {
      bucket.tokens = Math.min(burst, bucket.tokens + refill)
      bucket.refilledMs += refill * refillMs
    }
    remember(this.#buckets, subject, bucket)
    if (bucket.tokens === 0) return false
    bucket.tokens--
    return true
  }

  #combined(groupId: string, message: string): string {
    const now = this.#clock.monotonic()
    const known = this.#groups.get(groupId)
    const group =
      known !== undefined && now - known.sinceMs < similarWindowMs
        ? known
        : { messages: new Set<string>(), sinceMs: now }
    remember(this.#groups, groupId, group)
    if (group.messages.has(message)) return message
    if (group.messages.size >= similarLimit) return `(combined from similar events): ${message}`
    group.messages.add(message)
    return message
  }

  #write(id: string, about: KubeObject, { component, type, reason, message }: EventContent): void {
    const now = rfc3339(this.#clock.now())
    const known = this.#recorded.get(id)
    if (known !== undefined && this.#api.get(kinds.event, known.namespace, known.name) !== undefined) {
      known.count++
      const patch = { count: known.count, lastTimestamp: now, message }
      this.#api.patch(kinds.event, known.namespace, known.name, patch)
      return
    }
    const namespace = about.metadata.namespace ?? 'default'
    const stamp = (BigInt(this.#clock.now()) * 1_000_000n + BigInt(this.#serial++)).toString(16)
    const event: EventObject = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${about.metadata.name}.${stamp}`, namespace },
      involvedObject: reference(about),
      reason,
      message,
      type,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    }
    this.#api.create(kinds.event, event)
    remember(this.#recorded, id, { namespace, name: event.metadata.name, count: 1 })
  }
}

function reference(about: KubeObject): Record<string, unknown> {
  const { namespace, name, uid, resourceVersion } = about.metadata
  const { apiVersion, kind } = about
  return {
    apiVersion,
    kind,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= remembered) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}
