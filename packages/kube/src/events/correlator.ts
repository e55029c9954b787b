/** Limits the events of each object, so that none can flood the cluster (operations.md 10). */
import type { Clock } from '@tenon/runtime'
import type { EventInput } from '../contract.ts'
import { type Rate, TokenBucket } from '../token-bucket.ts'
import { BoundedMap } from './bounded-map.ts'

/** What to do with an event: drop it, or write it under `key`, which counts equal events. */
export type Correlation =
  | { readonly kind: 'drop' }
  | { readonly kind: 'write'; readonly key: string; readonly message: string }

const cacheLimit = 4096
const similarLimit = 10
const similarWindowMs = 10 * 60_000
const usualRate: Rate = { perSecond: 1 / 300, burst: 25 }

interface Similar {
  readonly messages: Set<string>
  seenAt: number
}

export class Correlator {
  readonly #clock: Clock
  readonly #perObject: Rate
  readonly #buckets = new BoundedMap<TokenBucket>(cacheLimit)
  readonly #similar = new BoundedMap<Similar>(cacheLimit)

  /** @param perObject rate of events of one object. */
  constructor(clock: Clock, perObject: Rate = usualRate) {
    this.#clock = clock
    this.#perObject = perObject
  }

  correlate(event: EventInput): Correlation {
    const subject = subjectOf(event)
    const group = `${subject}|${event.type}|${event.reason}`
    const similar = this.#similarTo(group, event.message)
    let bucket = this.#buckets.get(subject)
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#perObject, this.#clock)
      this.#buckets.set(subject, bucket)
    }
    if (!bucket.tryTake()) return { kind: 'drop' }
    if (similar.messages.size <= similarLimit)
      return { kind: 'write', key: `${group}|${event.message}`, message: event.message }
    return { kind: 'write', key: group, message: `(combined from similar events): ${event.message}` }
  }

  #similarTo(group: string, message: string): Similar {
    const now = this.#clock.monotonic()
    const known = this.#similar.get(group)
    const similar =
      known !== undefined && now - known.seenAt <= similarWindowMs
        ? known
        : { messages: new Set<string>(), seenAt: now }
    similar.seenAt = now
    // More than the limit is not needed to know that there are too many.
    if (similar.messages.size <= similarLimit) similar.messages.add(message)
    this.#similar.set(group, similar)
    return similar
  }
}

function subjectOf({ object }: EventInput): string {
  const { namespace = '', name, uid = '' } = object.metadata
  return [object.apiVersion, object.kind, namespace, name, uid].join('|')
}
