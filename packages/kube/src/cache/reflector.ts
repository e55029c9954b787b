/** Keeps a store equal to a collection on the server: lists, watches, and starts over when it must. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { type Clock, integerBetween, type Logger, type Random } from '@tenon/runtime'
import { linkedAbort } from '../abortable.ts'
import { Backoff } from '../backoff.ts'
import { type WatchingKubeClient, withType } from '../client/client.ts'
import type { WatchEvent } from '../client/watch.ts'
import { isKubeError, KubeError, type ListOptions } from '../contract.ts'
import { Pacer } from '../pacer.ts'
import { compareResourceVersions } from './resource-version.ts'
import { keyText, type Store } from './store.ts'

export interface ReflectorOptions extends ListOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly random: Random
  /**
   * Take the first list as a stream where the server can do that (default true). A server that
   * refuses is asked for an ordinary list instead.
   */
  readonly useStreamedList?: boolean
  /** A watch without any event or bookmark for so long is taken for dead; default 2 minutes. */
  readonly stallMs?: number
}

/** A watch that lived this long, or told something, was not a failure. */
const healthyWatchMs = 10_000
const defaultStallMs = 120_000
/** The same while a streamed first list arrives, which a server without the feature never completes. */
const streamStallMs = 30_000
/** Bounds of the life the server is asked to give a watch, drawn so that watches do not end together. */
const watchSeconds = { low: 300, high: 600 }

export class Reflector<T extends KubeObject> {
  readonly #client: WatchingKubeClient
  readonly #type: ResourceType<T>
  readonly #store: Store<T>
  readonly #options: ReflectorOptions
  readonly #logger: Logger
  readonly #backoff: Backoff
  readonly #pacer: Pacer
  readonly #onSynced: () => void
  #useStreamedList: boolean
  #resourceVersion: string | undefined
  /** A streamed first list is arriving. */
  #isStreaming = false

  constructor(
    client: WatchingKubeClient,
    type: ResourceType<T>,
    store: Store<T>,
    options: ReflectorOptions,
    onSynced: () => void,
  ) {
    this.#client = client
    this.#type = type
    this.#store = store
    this.#options = options
    this.#onSynced = onSynced
    this.#logger = options.logger.with({ resource: type.plural })
    this.#backoff = new Backoff({ baseMs: 800, capMs: 30_000 }, options.random)
    this.#pacer = new Pacer(options.clock)
    this.#useStreamedList = options.useStreamedList ?? true
  }

  /** The version up to which the store is known to be complete. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion
  }

  /** Follows the server until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let waitMs = 0
      try {
        const isHealthy = await this.#round(signal)
        if (!isHealthy) waitMs = this.#backoff.next()
      } catch (error) {
        if (signal.aborted) return
        waitMs = this.#pauseAfter(error)
      }
      if (waitMs > 0 && !(await this.#wait(waitMs, signal))) return
    }
  }

  /** One list where needed and one watch; answers whether the watch did anything useful. */
  async #round(signal: AbortSignal): Promise<boolean> {
    if (this.#resourceVersion === undefined && !this.#useStreamedList) await this.#list(signal)
    const startedAt = this.#options.clock.monotonic()
    const told = await this.#watch(signal)
    this.#logger.debug('watch ended', { told })
    return told > 0 || this.#options.clock.monotonic() - startedAt >= healthyWatchMs
  }

  async #list(signal: AbortSignal): Promise<void> {
    const listing = await this.#client.listing(this.#type, { ...this.#selection(), signal })
    await this.#replace(listing.items, signal)
    this.#complete(listing.resourceVersion)
  }

  /** Makes the store equal to a complete list, one change at a time. */
  async #replace(items: readonly T[], signal: AbortSignal): Promise<void> {
    const present = new Set(items.map((item) => keyText(item.metadata)))
    for (const key of this.#store.keys()) if (!present.has(key)) this.#store.removeKey(key)
    for (const item of items) {
      this.#pacer.begin()
      this.#store.putListed(item)
      if (this.#pacer.end()) await this.#pacer.turn()
      signal.throwIfAborted()
    }
  }

  #complete(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
    this.#isStreaming = false
    this.#onSynced()
  }

  async #watch(signal: AbortSignal): Promise<number> {
    const { clock, random } = this.#options
    const isInitial = this.#resourceVersion === undefined
    const stallMs = isInitial ? streamStallMs : (this.#options.stallMs ?? defaultStallMs)
    const timeoutSeconds = integerBetween(random, watchSeconds.low, watchSeconds.high)
    const link = linkedAbort(signal)
    const guard = new StallGuard(clock, stallMs, () => {
      link.controller.abort(new KubeError('transport', 0, `the watch of ${this.#type.plural} has stalled`))
    })
    try {
      const events = await this.#client.watch(this.#type, {
        ...this.#selection(),
        ...(this.#resourceVersion !== undefined && { resourceVersion: this.#resourceVersion }),
        ...(isInitial && { sendInitialEvents: true }),
        timeoutSeconds,
        signal: link.controller.signal,
      })
      this.#isStreaming = isInitial
      return await this.#follow(events, guard, signal)
    } catch (error) {
      if (signal.aborted || !link.controller.signal.aborted) throw error
      throw link.controller.signal.reason
    } finally {
      guard.stop()
      link.unlink()
    }
  }

  async #follow(
    events: AsyncIterable<WatchEvent<T>>,
    guard: StallGuard,
    signal: AbortSignal,
  ): Promise<number> {
    let told = 0
    // Collects a streamed first list, which replaces the store only when it is complete.
    let initial = this.#resourceVersion === undefined ? new Map<string, T>() : undefined
    for await (const event of events) {
      guard.touch()
      if (initial === undefined) {
        this.#apply(event)
        told++
        this.#backoff.reset()
      } else if (event.kind === 'bookmark') {
        if (!event.isInitialEnd) continue
        await this.#replace([...initial.values()], signal)
        this.#complete(event.resourceVersion)
        guard.limitMs = this.#options.stallMs ?? defaultStallMs
        initial = undefined
      } else collect(initial, withType(this.#type, event.object), event.kind === 'deleted')
    }
    if (initial !== undefined) this.#refuseStream('the stream ended before the list was complete')
    return told
  }

  #apply(event: WatchEvent<T>): void {
    if (event.kind === 'bookmark') {
      this.#moveTo(event.resourceVersion)
      return
    }
    const object = withType(this.#type, event.object)
    if (event.kind === 'deleted') this.#store.remove(object)
    else this.#store.put(object)
    this.#moveTo(object.metadata.resourceVersion ?? '')
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
    if (this.#resourceVersion === undefined && this.#useStreamedList && isRefusal(error)) {
      this.#refuseStream(error.message)
      return 0
    }
    // A stream that broke or stalled may be one the server cannot give; a list is sure to work.
    if (this.#isStreaming) this.#refuseStream('the stream broke')
    const pauseMs = Math.max(
      waitMs,
      isKubeError(error, 'tooManyRequests', 'server') ? (error.retryAfterMs ?? 0) : 0,
    )
    this.#logger.warn('following failed, will retry', { error, delayMs: Math.round(pauseMs) })
    return pauseMs
  }

  #refuseStream(why: string): void {
    this.#useStreamedList = false
    this.#isStreaming = false
    this.#logger.debug('no streamed lists from this server', { why })
  }

  #selection(): ListOptions {
    const { namespace, labelSelector, fieldSelector } = this.#options
    return {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
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

function collect<T extends KubeObject>(objects: Map<string, T>, object: T, isDeleted: boolean): void {
  if (isDeleted) objects.delete(keyText(object.metadata))
  else objects.set(keyText(object.metadata), object)
}

/** Calls `onStall` when nothing touched it for a while; one timer, however many events arrive. */
class StallGuard {
  limitMs: number
  readonly #clock: Clock
  readonly #onStall: () => void
  #touchedAt: number
  #cancel: () => void

  constructor(clock: Clock, limitMs: number, onStall: () => void) {
    this.limitMs = limitMs
    this.#clock = clock
    this.#onStall = onStall
    this.#touchedAt = clock.monotonic()
    this.#cancel = this.#arm(limitMs)
  }

  touch(): void {
    this.#touchedAt = this.#clock.monotonic()
  }

  stop(): void {
    this.#cancel()
  }

  #arm(ms: number): () => void {
    return this.#clock.after(ms, () => {
      const leftMs = this.#touchedAt + this.limitMs - this.#clock.monotonic()
      if (leftMs <= 0) this.#onStall()
      else this.#cancel = this.#arm(leftMs)
    })
  }
}
