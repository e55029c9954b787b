import type { KubeObject, ResourceType } from '@tenon/api'
import { untilAborted } from '../abortable.ts'
import type { WatchingKubeClient } from '../client/client.ts'
import type { Cache, CachedCollection, Change, ObjectKey } from '../contract.ts'
import { TurnPace } from '../turn-pace.ts'
import { type ReflectedKind, Reflector, type ReflectorOptions } from './reflector.ts'
import { Store } from './store.ts'

export interface CacheOptions<T> extends ReflectorOptions, ReflectedKind<T> {
  /**
   * Trims each object before it is stored, or returns undefined to leave it out. Must not change name, namespace or
   * uid. Receives the stored object, whose parts it may reuse.
   */
  readonly transform?: (object: T, held?: T) => T | undefined
  /** Whether a refusal is the answer, as for a command, which does not wait for somebody to grant the right. */
  readonly isReadOnce?: boolean
  /** Shared by caches that take turns in announcing their content. If absent, each cache has its own. */
  readonly pace?: TurnPace
}

/** How one collection is followed. */
type Following<T extends KubeObject> = Omit<CachedCollection<T>, 'isOptional'> & {
  readonly isOptional: boolean
}

/** A cache as its owner uses it. */
export interface FollowingCache<T extends KubeObject> extends Cache<T> {
  /** Adds options; throws once the cache is started. */
  configure(collection: Following<T>): void
  /**
   * Starts to follow the server until `signal` aborts. Call it once. The content stays readable after the abort.
   */
  start(signal: AbortSignal): void
  /** Resolves after the first complete list, or after the server refused a collection that is optional or read once. */
  answered(signal?: AbortSignal): Promise<void>
  /** The collection version of the content; `undefined` before the first list. */
  readonly lastSyncResourceVersion: string | undefined
  /** How many object states were received; it grows while a list arrives. */
  readonly received: number
}

/** A local copy of one collection, or of the part that selectors match. */
export function createCache<T extends KubeObject>(
  client: WatchingKubeClient,
  type: ResourceType<T>,
  options: CacheOptions<T>,
): FollowingCache<T> {
  return new ReflectedCache(client, type, options)
}

class ReflectedCache<T extends KubeObject> implements FollowingCache<T> {
  readonly type: ResourceType<T>
  readonly #client: WatchingKubeClient
  #options: CacheOptions<T>
  readonly #store: Store<T>
  #reflector: Reflector<T> | undefined
  readonly #firstList = Promise.withResolvers<void>()
  readonly #firstAnswer = Promise.withResolvers<void>()
  #isSynced = false
  #isRefused = false

  constructor(client: WatchingKubeClient, type: ResourceType<T>, options: CacheOptions<T>) {
    this.type = type
    this.#client = client
    this.#options = options
    const { pace = new TurnPace(options.clock) } = options
    this.#store = new Store<T>({
      transform: (object, held) => {
        const { transform } = this.#options
        return transform === undefined ? object : transform(object, held)
      },
      pacing: { clock: options.clock, pace },
      onBug: (error) => {
        options.logger.error('bug in a consumer of a cache', { resource: type.plural, error })
      },
    })
  }

  get size(): number {
    return this.#store.size
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  get isListedAgain(): boolean {
    return this.#isSynced && this.lastSyncResourceVersion === undefined
  }

  get isRefused(): boolean {
    return this.#isRefused
  }

  get received(): number {
    return this.#store.received
  }

  get lastSyncResourceVersion(): string | undefined {
    return this.#reflector?.resourceVersion
  }

  get(key: ObjectKey): T | undefined {
    return this.#store.get(key)
  }

  list(): T[] {
    return this.#store.list()
  }

  addIndex(name: string, values: (object: T) => readonly string[]): void {
    this.#store.addIndex(name, values)
  }

  byIndex(name: string, value: string): T[] {
    return this.#store.byIndex(name, value)
  }

  onChange(listener: (change: Change<T>) => void): () => void {
    return this.#store.onChange(listener)
  }

  relist(reason: string): void {
    this.#reflector?.relist(reason)
  }

  synced(signal?: AbortSignal): Promise<void> {
    return untilAborted(this.#firstList.promise, signal)
  }

  answered(signal?: AbortSignal): Promise<void> {
    return untilAborted(this.#firstAnswer.promise, signal)
  }

  configure(collection: Following<T>): void {
    if (this.#reflector !== undefined) throw new Error(`the cache of ${this.type.plural} is started already`)
    this.#options = { ...this.#options, ...collection }
  }

  start(signal: AbortSignal): void {
    if (this.#reflector !== undefined) throw new Error(`the cache of ${this.type.plural} is started already`)
    const { transform: _, pace: __, ...following } = this.#options
    this.#reflector = new Reflector(this.#client, this.type, this.#store, following, {
      synced: () => {
        this.#isSynced = true
        this.#isRefused = false
        this.#firstList.resolve()
        this.#firstAnswer.resolve()
      },
      refused: () => {
        this.#isRefused = true
        if (following.isOptional === true || following.isReadOnce === true) this.#firstAnswer.resolve()
      },
    })
    void this.#reflector.run(signal)
  }
}
