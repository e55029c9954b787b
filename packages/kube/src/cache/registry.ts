import { apiVersionOf, type KubeObject, type ResourceType } from '@tenon/api'
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { WatchingKubeClient } from '../client/client.ts'
import type { Cache, CachedCollection, CacheRegistry } from '../contract.ts'
import { TurnPace } from '../turn-pace.ts'
import { createCache, type FollowingCache } from './cache.ts'

export interface CacheRegistryOptions {
  readonly client: WatchingKubeClient
  readonly clock: Clock
  readonly logger: Logger
  readonly random: Random
  /** Whether a command reads each collection once: by a plain list, and a refusal ends the wait for it. */
  readonly isReadOnce?: boolean
  readonly stallMs?: number
}

/** Caches of whole collections, one per type, shared by all callers. */
export function createCacheRegistry(options: CacheRegistryOptions): CacheRegistry {
  return new SharedCaches(options)
}

/** Resolves after the first complete list of each of `caches`. */
export async function waitForSync(
  caches: Iterable<Pick<Cache<KubeObject>, 'synced'>>,
  signal?: AbortSignal,
): Promise<void> {
  await Promise.all(Array.from(caches, (cache) => cache.synced(signal)))
}

class SharedCaches implements CacheRegistry {
  readonly #options: CacheRegistryOptions
  readonly #caches = new Map<string, FollowingCache<KubeObject>>()
  /** Types whose options are set. */
  readonly #configured = new Set<string>()
  readonly #optional = new Map<string, true | 'ifRefused'>()
  readonly #pace: TurnPace
  #signal: AbortSignal | undefined

  constructor(options: CacheRegistryOptions) {
    this.#options = options
    this.#pace = new TurnPace(options.clock)
  }

  cache<T extends KubeObject>(
    type: ResourceType<T>,
    { isOptional = false, ...collection }: CachedCollection<T> = {},
  ): Cache<T> {
    const { fieldSelector = '', namespace = '' } = collection
    const part = namespace + fieldSelector === '' ? '' : `/${namespace}?${fieldSelector}`
    const id = `${apiVersionOf(type)}/${type.plural}${part}`
    if (isOptional !== false) this.#optional.set(id, isOptional)
    // Keyed by type, so the value has the type's objects.
    const known = this.#caches.get(id) as unknown as FollowingCache<T> | undefined
    const isNew = Object.keys(collection).length > 0 && !this.#configured.has(id)
    if (isNew) this.#configured.add(id)
    if (known !== undefined) {
      if (isNew && this.#signal === undefined)
        known.configure({ ...collection, isOptional: this.#optional.has(id) })
      return known
    }
    const { client, random, isReadOnce = false, ...rest } = this.#options
    const cache = createCache(client, type, {
      ...rest,
      isReadOnce,
      useStreamedList: !isReadOnce,
      random: random.fork(id),
      pace: this.#pace,
      ...collection,
      isOptional: this.#optional.has(id),
    })
    this.#caches.set(id, cache as unknown as FollowingCache<KubeObject>)
    if (this.#signal !== undefined) cache.start(this.#signal)
    return cache
  }

  start(signal: AbortSignal): void {
    if (this.#signal !== undefined) throw new Error('the caches are started already')
    this.#signal = signal
    for (const cache of this.#caches.values()) cache.start(signal)
  }

  async synced(signal?: AbortSignal): Promise<void> {
    while (this.waitingFor.length > 0) {
      await Promise.all(this.#awaited().map((cache) => cache.answered(signal)))
      if (this.#options.isReadOnce === true && this.waitingFor.length > 0)
        throw new Error(`the API server refuses lists of ${this.waitingFor.join(', ')}`)
    }
  }

  get waitingFor(): readonly string[] {
    return [...this.arrivals.keys()].toSorted()
  }

  get arrivals(): ReadonlyMap<string, number> {
    return new Map(
      this.#awaited()
        .filter((cache) => !cache.isSynced)
        .map((cache) => [cache.type.plural, cache.received]),
    )
  }

  #awaited(): readonly FollowingCache<KubeObject>[] {
    return [...this.#caches].flatMap(([id, cache]) => (this.#isAwaited(id, cache) ? [cache] : []))
  }

  #isAwaited(id: string, cache: FollowingCache<KubeObject>): boolean {
    const isOptional = this.#optional.get(id)
    return isOptional === undefined || (isOptional === 'ifRefused' && !cache.isRefused)
  }
}
