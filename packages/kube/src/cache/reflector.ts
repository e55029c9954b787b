/** Keeps a store in sync with a collection on the server: lists, watches, and relists when necessary. */
import { compareResourceVersions, type KubeObject, type ResourceType } from '@tenon/api'
import { type Clock, integerBetween, type Logger, type Random } from '@tenon/runtime'
import { linkedAbort } from '../abortable.ts'
import { Backoff } from '../backoff.ts'
import { type WatchingKubeClient, withType } from '../client/client.ts'
import { resourceVersionTooLarge } from '../client/errors.ts'
import type { WatchEvent } from '../client/watch.ts'
import { isKubeError, isUnavailable, KubeError, type ListOptions } from '../contract.ts'
import { Pacer } from '../pacer.ts'
import { Relists } from './relists.ts'
import { SecondWitness } from './second-witness.ts'
import { StallGuard, type WatchLimits } from './stall-guard.ts'
import { type Entry, keyText, type Store } from './store.ts'

export interface ReflectorOptions extends ListOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly random: Random
  /**
   * Take the first list as a stream where the server can do that (default true). A server that
   * refuses is asked for an ordinary list instead.
   */
  readonly useStreamedList?: boolean
  /** Changes may be told so much later, and many in a row; without it one by one. */
  readonly gatherMs?: number
  /** A watch without any event or bookmark for so long is treated as dead; default 2 minutes. */
  readonly stallMs?: number
  /** The server may refuse the collection, which is told once and not at each attempt. */
  readonly isOptional?: boolean
}

/** What a reflector has to know of the kind. */
export interface ReflectedKind<T> {
  /** Whether many such objects may be gone at once without a deletionTimestamp before. */
  readonly endsUnannounced?: (object: T) => boolean
}

/** What the owner of a reflector is told. */
interface Answers {
  /** The store has a complete list. */
  readonly synced: () => void
  /** The kind is not served, or there is no right to read it. */
  readonly refused: () => void
}

/** A watch that lived this long, or told something, was not a failure. */
const healthyWatchMs = 10_000
/** Servers send a bookmark a minute, and skip one now and then; the rest is for what delays the next one. */
const defaultStallMs = 150_000
/**
 * The same while a streamed first list arrives, which a server without the feature never completes.
 * Changes on a busy cluster keep even such a stream alive, hence the bound of the whole; pages have
 * none, as each of them gets further.
 */
const streamLimits: WatchLimits = { silentMs: 30_000, totalMs: 120_000 }
/** A server's wish to be left alone is followed for so long at most. */
const retryAfterLimitMs = 300_000
/** Failures after which a stream is not tried again, even when the server never said no. */
const streamAttempts = 3
/** So many watches in a row may be refused before the collection is listed: the version may be none. */
const refusalsBorne = 1
/** The same where the server is behind, or asks to be left alone. */
const pleasBorne = 3
/** How often patience with a silent watch doubles, so that events that are minutes late arrive in the end. */
const mostDoublings = 2
/** So many objects that a list lacks are read by name, spread evenly over them. */
const mostNamedReads = 8
/** Bounds of the life the server is asked to give a watch, drawn so that watches do not end together. */
const watchSeconds = { low: 300, high: 600 }

export class Reflector<T extends KubeObject> {
  readonly #client: WatchingKubeClient
  readonly #type: ResourceType<T>
  readonly #store: Store<T>
  readonly #options: ReflectorOptions & ReflectedKind<T>
  readonly #logger: Logger
  readonly #backoff: Backoff
  readonly #pacer: Pacer
  readonly #answers: Answers
  readonly #relists: Relists
  readonly #witness: SecondWitness
  /** The collection is refused, and that was told. */
  #isRefused = false
  #useStreamedList: boolean
  #resourceVersion: string | undefined
  /** A streamed first list is arriving. */
  #isStreaming = false
  /** Watches that were refused, one after the other. */
  #refusals = 0
  /** Watches given up because nothing came in time, one after the other. */
  #stalls = 0
  /** Objects that are being looked for by name, as they are told gone. */
  #lookedFor = 0
  /** Gives up the present watch. */
  #leave: () => void = () => undefined

  constructor(
    client: WatchingKubeClient,
    type: ResourceType<T>,
    store: Store<T>,
    options: ReflectorOptions & ReflectedKind<T>,
    answers: Answers,
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

  /** The version up to which the store is known to be complete. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion
  }

  /** Lists the collection again, in pages: the content does not agree with what else is known. */
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
        // A watch that was left for a list has not failed.
        waitMs = this.#relists.isDue ? 0 : this.#pauseAfter(error)
      }
      if (waitMs > 0 && !(await this.#wait(waitMs, signal))) return
    }
  }

  /** One list where needed and one watch; answers whether the watch did anything useful. */
  async #round(signal: AbortSignal): Promise<boolean> {
    const isUnknown = this.#resourceVersion === undefined
    if (this.#relists.isDue && !isUnknown) await this.#listAgain(signal)
    else if (this.#relists.isDue || (isUnknown && !this.#useStreamedList)) await this.#list(signal)
    const startedAt = this.#options.clock.monotonic()
    const told = await this.#watch(signal)
    this.#logger.debug('watch ended', { told })
    if (this.#stalls > 0) this.#stalls--
    return told > 0 || this.#options.clock.monotonic() - startedAt >= healthyWatchMs
  }

  /** A list of what is followed: if it fails, the watch goes on meanwhile. */
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
   * Makes the store equal to a complete list, one change at a time. Of a list that has lost much, only what is new is
   * taken in until another one bears it out.
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
   * Whether named reads still find what a list lacks: such a list is wrong, however often it is repeated. A few are read,
   * of those that nobody was seen to delete. A read that fails says nothing.
   */
  async #isContradicted(lost: readonly string[], signal: AbortSignal): Promise<boolean> {
    const { labelSelector, fieldSelector } = this.#options
    // An object may be there, and no longer be selected.
    if (labelSelector !== undefined || fieldSelector !== undefined) return false
    const unannounced = lost
      .map((key) => this.#store.at(key))
      .filter((object) => object !== undefined)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    const step = Math.ceil(unannounced.length / mostNamedReads)
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

  /** Does something with each of many, and lets others run meanwhile. */
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
      // A first list that is arriving is the list that is asked for.
      if (this.#resourceVersion !== undefined) link.controller.abort(new Error('to be listed again'))
    }
    if (isInitial) this.#relists.begin()
    else if (this.#relists.isDue) this.#leave()
    try {
      // Until the server accepts it, the request's own timeouts guard the watch.
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
        // What comes too late may be in a list. Where watches are always silent, nothing happens.
        if (this.#stalls < mostDoublings) this.#relists.now()
        this.#stalls = Math.min(this.#stalls + 1, mostDoublings)
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
    let told = 0
    // Collects a streamed first list, which replaces the store only when it is complete.
    let initial = this.#resourceVersion === undefined ? new Map<string, Entry<T>>() : undefined
    for await (const events of rows) {
      guard.touch()
      this.#pacer.begin()
      for (const event of events) {
        if (initial === undefined) {
          this.#apply(event, signal)
          told++
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
    return told
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
      if ((object.metadata.finalizers ?? []).length > 0) void this.#lookFor(object, signal)
      if (this.#isGone(object)) this.#store.remove(object)
    }
    this.#moveTo(object.metadata.resourceVersion ?? '')
  }

  /** Whether a deletion is believed. One that nothing announced, of many at once, is not before a list agrees. */
  #isGone(last: T): boolean {
    const held = this.#store.get(last.metadata)
    const isAnnounced = (last.metadata.deletionTimestamp ?? held?.metadata.deletionTimestamp) !== undefined
    if (held === undefined || isAnnounced) return true
    const isUsual = this.#options.endsUnannounced?.(held) === true
    const verdict = this.#witness.vanished(keyText(last.metadata), this.#store.size)
    if (verdict !== 'believed') this.relist('objects are told gone that nobody seemed to delete')
    else if (!isUsual) this.#relists.check()
    return verdict !== 'held' || isUsual
  }

  /**
   * Looks for an object that is told gone and had finalizers: its end was announced, so that nothing else tells a wrong
   * deletion, and it may stay so for long. Of many, some are looked for, and a list shows the rest.
   */
  async #lookFor({ metadata }: T, signal: AbortSignal): Promise<void> {
    const { endsUnannounced, fieldSelector, labelSelector } = this.#options
    const held = this.#store.get(metadata)
    // An object may be there, and no longer be selected.
    if (
      held === undefined ||
      endsUnannounced?.(held) === true ||
      (labelSelector ?? fieldSelector) !== undefined
    )
      return
    if (this.#lookedFor >= mostNamedReads) {
      this.#relists.check()
      return
    }
    this.#lookedFor++
    try {
      const found = await this.#client.get(this.#type, metadata, { signal, lane: 'urgent' })
      if (found !== undefined && found.metadata.uid === metadata.uid)
        this.relist('an object is told gone that a named read finds')
    } catch {
      if (!signal.aborted) this.#relists.check()
    } finally {
      this.#lookedFor--
    }
  }

  /** A repeated event must not take the point of resumption back. */
  #moveTo(resourceVersion: string): void {
    if (resourceVersion === '') return
    const order = compareResourceVersions(resourceVersion, this.#resourceVersion ?? '')
    if (order === undefined || order > 0) this.#resourceVersion = resourceVersion
  }

  /** Takes note of a failure; answers how long to wait before the next attempt. */
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
    // A stream that broke, stalled or never began may be one the server cannot give; a list is sure to work.
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

  /** Counts what the server refuses. */
  #isRefusedForGood(error: unknown): boolean {
    if (!(error instanceof KubeError) || error.status < 400) return false
    const borne = isAhead(error) || error.kind === 'tooManyRequests' ? pleasBorne : refusalsBorne
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

  /** Answers false when `signal` aborted meanwhile. */
  async #wait(ms: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.clock.sleep(ms, signal)
      return true
    } catch {
      // Only an abort ends a sleep early.
      return false
    }
  }
}

/** Servers without the feature refuse the parameters of a streamed list. */
function isRefusal(error: unknown): error is KubeError {
  return isKubeError(error, 'invalid') || (error instanceof KubeError && error.status === 406)
}

/** The server does not know the version yet: it lags behind, or was restored from a backup. */
function isAhead(error: unknown): boolean {
  return error instanceof KubeError && error.reason === resourceVersionTooLarge
}
