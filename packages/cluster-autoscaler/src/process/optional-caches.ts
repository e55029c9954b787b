/** Kinds whose definition or permission may be added while the process runs. */
import type { ResourceType } from '@tenon/api'
import { type Cache, type CacheRegistry, createCache, type WatchingKubeClient } from '@tenon/kube'
import { type Runtime, silentLogger, type Transport } from '@tenon/runtime'
import { usualFields } from './read-fields.ts'
import { readableKinds } from './readable-kinds.ts'

export interface OptionalCachesDependencies {
  readonly client: WatchingKubeClient
  readonly transport: Transport
  readonly registry: CacheRegistry
  readonly runtime: Runtime
}

const askAgainMs = 60_000

/**
 * Follows the kinds once all of them can be read. If they can at the start, the registry waits for their first lists;
 * otherwise they are asked for every minute.
 * @param missing called if they cannot be read at the start.
 * @returns the caches; undefined until they have their first lists.
 */
export async function followOnceReadable<T extends readonly ResourceType[]>(
  types: T,
  { client, transport, registry, runtime }: OptionalCachesDependencies,
  missing: () => void,
  signal: AbortSignal,
  /** See `CachedCollection`. */
  { areLimits = false }: { readonly areLimits?: boolean } = {},
): Promise<() => CachesOf<T> | undefined> {
  const collection = { fields: usualFields, areLimits }
  const areReadable = async (logger = runtime.logger) => {
    // A right that is missing would be refused, and audited, every minute: discovery needs none.
    for (const type of types) if (!(await isServed(type, client, signal))) return false
    return (await readableKinds(types, { transport, ...runtime, logger }, signal)).length === types.length
  }
  if (await areReadable()) {
    const caches = types.map((type) => registry.cache(type, collection)) as CachesOf<T>
    return () => caches
  }
  missing()
  let caches: CachesOf<T> | undefined
  const later = async () => {
    do await runtime.clock.sleep(askAgainMs, signal)
    while (!(await areReadable(silentLogger)))
    const created = types.map((type) => createCache(client, type, { ...runtime, ...collection }))
    for (const cache of created) cache.start(signal)
    await Promise.all(created.map((cache) => cache.synced(signal)))
    caches = created as CachesOf<T>
  }
  later().catch((error: unknown) => {
    const kinds = types.map(({ kind }) => kind).join()
    if (!signal.aborted) runtime.logger.error('kinds are not followed', { kinds, error })
  })
  return () => caches
}

/** True if that cannot be found out: a request for the kind itself will tell. */
async function isServed(
  { group, version, plural }: ResourceType,
  client: WatchingKubeClient,
  signal: AbortSignal,
): Promise<boolean> {
  if (group === '') return true
  const served = await client.servedKinds(group, version, { signal }).catch(() => undefined)
  return served?.some((each) => each.plural === plural) ?? true
}

type CachesOf<T extends readonly ResourceType[]> = {
  readonly [at in keyof T]: T[at] extends ResourceType<infer Kind> ? Cache<Kind> : never
}
