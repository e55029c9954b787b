/** Keeps a store in sync with a collection on the server: lists, watches, and relists when necessary. */
import { compareResourceVersions, type KubeObject, type ResourceType } from '@tenon/api'
import { type Clock, integerBetween, type Logger, type Random } from '@tenon/runtime'
import { linkedAbort } from '../abortable.ts'
import { Backoff } from '../backoff.ts'
import { type WatchingKubeClient, withType } from '../client/client.ts'
import { resourceVersionTooLarge } from '../client/errors.ts'
import type { WatchEvent } from '../client/watch.ts'
import { isKubeError, isUnavailable, KubeError, type ListOptions } from '../contract.ts'
import { Relists } from './relists.ts'
import { SecondWitness } from './second-witness.ts'
import { StallGuard, type WatchLimits } from './stall-guard.ts'
import { type Entry, keyText, type Store } from './store.ts'

export interface ReflectorOptions extends ListOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly random: Random
  /**
   * Whether to request the first list as a stream (default true). If the server refuses, an ordinary list is requested.
   */
  readonly useStreamedList?: boolean
  /**
   * Maximum delay of a change; changes within it are sent together. If absent, each change is sent at once.
   */
  readonly gatherMs?: number
  /** A watch without an event or bookmark for so long is treated as dead. */
  readonly stallMs?: number
  /** Whether the server may refuse the collection; this is then logged once instead of at each attempt. */
  readonly isOptional?: boolean
}

/** What a reflector needs to know about the kind. */
export interface ReflectedKind<T> {
  /** Whether many such objects may disappear at once without a deletionTimestamp. */
  readonly endsUnannounced?: (object: T) => boolean
  /** See {@link CachedCollection.areLimits}. */
  readonly areLimits?: boolean
}

/** Called by the reflector. */
interface ReflectorCallbacks {
  /** The store has a complete list. */
  readonly synced: () => void
  /** The kind is not served, or the right to read it is missing. */
  readonly refused: () => void
}

/** A watch of this duration, or with an event, does not count as a failure. */
const healthyWatchMs = 10_000
/** Servers send a bookmark each minute and sometimes skip one; the rest is for delays. */
const defaultStallMs = 150_000
/**
 * Limits of a streamed first list, which servers without the feature never complete. Changes of a busy cluster keep
 * such a stream alive, so its total time is limited too. Paged lists have no limit, as each page is progress.
 */
const streamLimits: WatchLimits = { silentMs: 30_000, totalMs: 120_000 }
/** The longest `Retry-After` that is followed. */
const retryAfterLimitMs = 300_000
/** After so many failures, streamed lists are not tried again, even if the server never refused them. */
const streamAttempts = 3
/** After so many refused watches in a row, the collection is listed: the version may not exist. */
const maxRefusals = 1
/** The same if the server lags behind or is overloaded. */
const maxThrottled = 3
/** How often the stall timeout doubles, so that events that are minutes late arrive in the end. */
const maxDoublings = 2
/** Maximum objects missing from a list that are read by name, evenly spread. */
const maxNamedReads = 8
/** Range of the timeout requested for watches; random, so that they do not all end together. */
const watchSeconds = { low: 300, high: 600 }

export class Reflector<T extends KubeObject> {
  readonly #client: WatchingKubeClient
  readonly #type: ResourceType<T>
  readonly #store: Store<T>
  readonly #options: ReflectorOptions & ReflectedKind<T>
  readonly #logger: Logger
  readonly #backoff: Backoff
  readonly #pacer: Pacer
  readonly #answers: ReflectorCallbacks
  readonly #relists: Relists
  readonly #witness: SecondWitness
  /** The server refuses the collection, and this was reported. */
  #isRefused = false
  #useStreamedList: boolean
  #resourceVersion: string | undefined
  /** A streamed first list is arriving. */
  #isStreaming = false
  /** Consecutive refused watches. */
  #refusals = 0
  /** Consecutive stalled watches. */
  #stalls = 0
  /** Deleted objects that are being confirmed by name. */
  #lookedFor = 0
  /** Ends the current watch. */
  #leave: () => void = () => undefined

  constructor(
    client: WatchingKubeClient,
    type: ResourceType<T>,
    store: Store<T>,
    options: ReflectorOptions & ReflectedKind<T>,
    answers: ReflectorCallbacks,
  ) {
    this.#client = client
    this.#type = type
    this.#store = store
    this.#options = options
    this.#answers = answers
    this.#logger = options.logger.with({ resource: type.plural })
    this.#backoff = new Backoff({ baseMs: 800, capMs: 30_000 }, options.random)
    this.#pacer = new Pacer(options.clock)
    this.#useStreamedList = options.useStreamedList ?? true
    this.#witness = new SecondWitness(options.clock)
    this.#relists = new Relists(options.clock, options.random.fork('lists'), () => {
      this.#leave()
    })
  }

  /** The version up to which the store is complete. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion
  }

  /** Lists the collection again, in pages, because the content contradicts other knowledge. */
  relist(reason: string): void {
    this.#logger.debug('to be listed again', { reason })
    this.#relists.ask()
  }

  /** Follows the server until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#rounds(signal)
    this.#relists.stop()
  }

  async #rounds(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let waitMs = 0
      try {
        const isHealthy = await this.#round(signal)
        if (!isHealthy) waitMs = this.#backoff.next()
      } catch (error) {
        if (signal.aborted) return
        // A watch that was ended for a list has not failed.
        waitMs = this.#relists.isDue ? 0 : this.#pauseAfter(error)
      }
      if (waitMs > 0 && !(await this.#wait(waitMs, signal))) return
    }
  }

  /** A list if necessary, and one watch. Returns whether the watch was useful. */
  async #round(signal: AbortSignal): Promise<boolean> {
    const isUnknown = this.#resourceVersion === undefined
    if (this.#relists.isDue && !isUnknown) await this.#listAgain(signal)
    else if (this.#relists.isDue || (isUnknown && !this.#useStreamedList)) await this.#list(signal)
    const startedAt = this.#options.clock.monotonic()
    const received = await this.#watch(signal)
    this.#logger.debug('watch ended', { received })
    if (this.#stalls > 0) this.#stalls--
    return received > 0 || this.#options.clock.monotonic() - startedAt >= healthyWatchMs
  }

  /** Lists a followed collection. If it fails, the watch still goes on. */
  async #listAgain(signal: AbortSignal): Promise<void> {
    try {
      await this.#list(signal)
    } catch (error) {
      if (signal.aborted) throw error
      this.#logger.warn('listing again failed, will retry', { error })
      this.#relists.ask()
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#relists.begin()
    const options = { ...this.#selection(), signal, lane: 'urgent' } as const
    const listing = await this.#client.listing(this.#type, options, (object) => this.#store.entryOf(object))
    await this.#take(new Map(listing.items.map((item) => [item.key, item])), listing.resourceVersion, signal)
  }

  /**
   * Makes the store equal to a complete list, one change at a time. If a list lacks too many objects, only its new
   * objects are stored until a second list confirms it.
   */
  async #take(
    items: ReadonlyMap<string, Entry<T>>,
    resourceVersion: string,
    signal: AbortSignal,
  ): Promise<void> {
    const lost: string[] = []
    const known = this.#store.size
    await this.#paced(this.#store.keys(), signal, (key) => {
      if (this.#store.isLost(key, items.get(key))) lost.push(key)
    })
    const isBelieved = this.#witness.believes(lost, known) && !(await this.#isContradicted(lost, signal))
    if (isBelieved)
      await this.#paced(lost, signal, (key) => {
        if (!items.has(key)) this.#store.removeKey(key)
      })
    await this.#paced(items.values(), signal, (item) => {
      if (isBelieved || !this.#store.isLost(item.key, item)) this.#store.putListed(item)
    })
    const isFirst = this.#resourceVersion === undefined
    this.#complete(resourceVersion)
    this.#relists.listed(isFirst)
    if (!isBelieved) {
      this.#logger.warn('a list lacks objects that are known, which are kept until another list agrees', {
        known,
        lacking: lost.length,
      })
      this.#relists.ask()
    }
    if (this.#relists.isDue) this.#leave()
  }

  /**
   * Whether some objects that a list lacks can still be read by name: then the list is wrong, even if it is repeated.
   * Reads a few objects whose deletion was not seen. A failed read proves nothing.
   */
  async #isContradicted(lost: readonly string[], signal: AbortSignal): Promise<boolean> {
    const { labelSelector, fieldSelector } = this.#options
    // The object may exist but no longer match the selectors.
    if (labelSelector !== undefined || fieldSelector !== undefined) return false
    const unannounced = lost
      .map((key) => this.#store.at(key))
      .filter((object) => object !== undefined)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    const step = Math.ceil(unannounced.length / maxNamedReads)
    const reads = unannounced
      .filter((_, at) => at % step === 0)
      .map(async (object) => {
        const key = object.metadata
        const found = await this.#client.get(this.#type, key, { signal, lane: 'urgent' })
        return found !== undefined && this.#store.confirms(found)
      })
    const answers = await Promise.allSettled(reads)
    signal.throwIfAborted()
    return answers.some((answer) => answer.status === 'fulfilled' && answer.value)
  }

  /** Calls `step` for each element and yields to other work meanwhile. */
  async #paced<E>(each: Iterable<E>, signal: AbortSignal, step: (element: E) => void): Promise<void> {
    for (const element of each) {
      this.#pacer.begin()
      step(element)
      if (this.#pacer.end()) await this.#pacer.turn()
      signal.throwIfAborted()
    }
  }

  #complete(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
    this.#isStreaming = false
    this.#isRefused = false
    this.#answers.synced()
  }

  async #watch(signal: AbortSignal): Promise<number> {
    const { clock, random, gatherMs } = this.#options
    const isInitial = this.#resourceVersion === undefined
    const link = linkedAbort(signal)
    this.#leave = () => {
      // A first list that is arriving is the requested list.
      if (this.#resourceVersion !== undefined) link.controller.abort(new Error('to be listed again'))
    }
    if (isInitial) this.#relists.begin()
    else if (this.#relists.isDue) this.#leave()
    try {
      // The request's own timeouts apply until the server accepts the watch.
      const rows = await this.#client.watch(this.#type, {
        ...this.#selection(),
        ...(this.#resourceVersion !== undefined && { resourceVersion: this.#resourceVersion }),
        ...(isInitial && { sendInitialEvents: true }),
        timeoutSeconds: integerBetween(random, watchSeconds.low, watchSeconds.high),
        ...(gatherMs !== undefined && { gatherMs }),
        signal: link.controller.signal,
        lane: 'urgent',
      })
      this.#isStreaming = isInitial
      const guard = new StallGuard(clock, isInitial ? streamLimits : this.#limits(), () => {
        // Late events may be in a list. If watches are always silent, nothing is missing.
        if (this.#stalls < maxDoublings) this.#relists.now()
        this.#stalls = Math.min(this.#stalls + 1, maxDoublings)
        const message = `the watch of ${this.#type.plural} has stalled`
        link.controller.abort(new KubeError('transport', 0, message))
      })
      return await this.#follow(rows, guard, signal).finally(() => {
        guard.stop()
      })
    } catch (error) {
      if (signal.aborted || !link.controller.signal.aborted) throw error
      throw link.controller.signal.reason
    } finally {
      this.#leave = () => undefined
      link.unlink()
    }
  }

  async #follow(
    rows: AsyncIterable<Iterable<WatchEvent<T>>>,
    guard: StallGuard,
    signal: AbortSignal,
  ): Promise<number> {
    let received = 0
    // Collects a streamed first list, which replaces the store once it is complete.
    let initial = this.#resourceVersion === undefined ? new Map<string, Entry<T>>() : undefined
    for await (const events of rows) {
      guard.touch()
      this.#pacer.begin()
      for (const event of events) {
        if (initial === undefined) {
          this.#apply(event, signal)
          received++
          this.#refusals = 0
          this.#backoff.reset()
        } else if (event.kind === 'bookmark') {
          if (!event.isInitialEnd) continue
          await this.#take(initial, event.resourceVersion, signal)
          guard.limit(this.#limits())
          initial = undefined
        } else if (event.kind === 'deleted') initial.delete(keyText(event.object.metadata))
        else {
          const entry = this.#store.entryOf(withType(this.#type, event.object))
          initial.set(entry.key, entry)
        }
        // Reading the next event is part of its step.
        if (!this.#pacer.end()) continue
        await this.#pacer.turn()
        guard.touch()
        this.#pacer.begin()
      }
    }
    if (initial !== undefined) this.#refuseStream('the stream ended before the list was complete')
    return received
  }

  #limits(): WatchLimits {
    const stallMs = this.#options.stallMs ?? defaultStallMs
    return { silentMs: stallMs * 2 ** this.#stalls }
  }

  #apply(event: WatchEvent<T>, signal: AbortSignal): void {
    if (event.kind === 'bookmark') {
      this.#moveTo(event.resourceVersion)
      return
    }
    const object = withType(this.#type, event.object)
    if (event.kind !== 'deleted') this.#store.put(object)
    else {
      const isLookedFor = (object.metadata.finalizers ?? []).length > 0 && this.#isNamedReadProof(object)
      if (isLookedFor) void this.#lookFor(object, signal)
      // Without a deletionTimestamp, an API server deletes nothing that has finalizers.
      const isImpossible = isLookedFor && !this.#isAnnounced(object)
      if (!isImpossible && this.#isGone(object)) this.#store.remove(object)
    }
    this.#moveTo(object.metadata.resourceVersion ?? '')
  }

  /**
   * Whether a deletion is trusted. If many objects are deleted at once without a deletionTimestamp, a list must confirm
   * it.
   */
  #isGone(last: T): boolean {
    const held = this.#store.get(last.metadata)
    if (held === undefined || this.#isAnnounced(last)) return true
    const isUsual = this.#options.endsUnannounced?.(held) === true
    const verdict = this.#witness.vanished(keyText(last.metadata), this.#store.size, this.#options.areLimits)
    if (verdict !== 'believed') this.relist('objects are told gone that nobody seemed to delete')
    else if (!isUsual) this.#relists.check()
    return verdict !== 'held' || isUsual
  }

  #isAnnounced({ metadata }: T): boolean {
    return (metadata.deletionTimestamp ?? this.#store.get(metadata)?.metadata.deletionTimestamp) !== undefined
  }

  /** Whether the object must be gone if it is told gone: with selectors it may exist and no longer match. */
  #isNamedReadProof({ metadata }: T): boolean {
    const { endsUnannounced, fieldSelector, labelSelector } = this.#options
    const held = this.#store.get(metadata)
    return (
      held !== undefined && endsUnannounced?.(held) !== true && (labelSelector ?? fieldSelector) === undefined
    )
  }

  /**
   * Reads an object with finalizers that is told gone by name, as nothing else would reveal a wrong event. Of many
   * deletions, some are checked, and a list covers the others.
   */
  async #lookFor(last: T, signal: AbortSignal): Promise<void> {
    const { metadata } = last
    if (this.#lookedFor >= maxNamedReads) {
      this.#relists.check()
      return
    }
    this.#lookedFor++
    try {
      const found = await this.#client.get(this.#type, metadata, { signal, lane: 'urgent' })
      if (found !== undefined && found.metadata.uid === metadata.uid)
        this.relist('an object is told gone that a named read finds')
      else this.#store.remove(last)
    } catch {
      if (!signal.aborted) this.#relists.check()
    } finally {
      this.#lookedFor--
    }
  }

  /** Repeated events must not move the version back. */
  #moveTo(resourceVersion: string): void {
    if (resourceVersion === '') return
    const order = compareResourceVersions(resourceVersion, this.#resourceVersion ?? '')
    if (order === undefined || order > 0) this.#resourceVersion = resourceVersion
  }

  /** Records a failure. Returns how long to wait before the next attempt. */
  #pauseAfter(error: unknown): number {
    const failures = this.#backoff.failures
    const waitMs = this.#backoff.next()
    if (isKubeError(error, 'gone')) {
      this.#logger.info('version is gone, listing again', { resourceVersion: this.#resourceVersion })
      this.#resourceVersion = undefined
      return failures === 0 ? 0 : waitMs
    }
    if (this.#resourceVersion !== undefined && this.#isRefusedForGood(error)) {
      this.#logger.warn('watches are refused, listing again', {
        error,
        resourceVersion: this.#resourceVersion,
      })
      this.#resourceVersion = undefined
      this.#relists.now()
      return waitMs
    }
    const wantsStream = this.#resourceVersion === undefined && this.#useStreamedList
    if (wantsStream && isRefusal(error)) {
      this.#refuseStream(error.message)
      return 0
    }
    // If a stream broke, stalled or did not start, the server may not support it; a list always works.
    if (this.#isStreaming) this.#refuseStream('the stream broke')
    else if (wantsStream && failures + 1 >= streamAttempts) this.#refuseStream('the stream did not begin')
    const retryAfterMs = isKubeError(error, 'tooManyRequests', 'server') ? (error.retryAfterMs ?? 0) : 0
    const pauseMs = Math.max(waitMs, Math.min(retryAfterMs, retryAfterLimitMs))
    if (isUnavailable(error)) {
      this.#answers.refused()
      if (this.#options.isOptional === true) {
        this.#tellRefused(error)
        return pauseMs
      }
    }
    this.#isRefused = false
    this.#logger.warn('watching failed, will retry', { error, delayMs: Math.round(pauseMs) })
    return pauseMs
  }

  /** Counts refusals. Returns whether the server refuses the collection. */
  #isRefusedForGood(error: unknown): boolean {
    if (!(error instanceof KubeError) || error.status < 400) return false
    const borne = isAhead(error) || error.kind === 'tooManyRequests' ? maxThrottled : maxRefusals
    if (++this.#refusals <= borne) return false
    this.#refusals = 0
    return true
  }

  #tellRefused(error: KubeError): void {
    if (this.#isRefused) return
    this.#isRefused = true
    if (error.kind === 'forbidden')
      this.#logger.warn('not read: grant the right to list and watch it', { error })
    else this.#logger.info('not read: the API server does not serve it', { error })
  }

  #refuseStream(why: string): void {
    this.#useStreamedList = false
    this.#isStreaming = false
    this.#logger.debug('no streamed lists from this server', { why })
  }

  #selection(): ListOptions {
    const { namespace, labelSelector, fieldSelector, fields } = this.#options
    return {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
      ...(fields !== undefined && { fields }),
    }
  }

  /** Returns false if `signal` aborted meanwhile. */
  async #wait(ms: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.clock.sleep(ms, signal)
      return true
    } catch {
      // A sleep only ends early on abort.
      return false
    }
  }
}

/** Servers without the feature reject the parameters of a streamed list. */
function isRefusal(error: unknown): error is KubeError {
  return isKubeError(error, 'invalid') || (error instanceof KubeError && error.status === 406)
}

/** The server does not know the version yet: it lags behind, or was restored from a backup. */
function isAhead(error: unknown): boolean {
  return error instanceof KubeError && error.reason === resourceVersionTooLarge
}

/**
 * Keeps many small synchronous steps from blocking the event loop: adds up the time of the steps, without the waits
 * between them, and says when to yield. Virtual time stands still during a step, so tests never yield.
 */
class Pacer {
  readonly #clock: Clock
  readonly #sliceMs: number
  #startedAt = 0
  #spentMs = 0

  constructor(clock: Clock, sliceMs = 4) {
    this.#clock = clock
    this.#sliceMs = sliceMs
  }

  begin(): void {
    this.#startedAt = this.#clock.monotonic()
  }

  /** Ends a step, after which the next one may begin; returns whether {@link turn} is due. */
  end(): boolean {
    const now = this.#clock.monotonic()
    this.#spentMs += now - this.#startedAt
    this.#startedAt = now
    return this.#spentMs >= this.#sliceMs
  }

  /** Yields to the event loop once. */
  async turn(): Promise<void> {
    this.#spentMs = 0
    await this.#clock.sleep(0)
  }
}
