/**
 * An in-memory Kubernetes API for tests of providers. It is not the embedded API server, as `@tenon/provider` is
 * published without dependencies, and tests need each write to be visible at once.
 */
import { type KubeObject, matchesSelector, type NewObject, pathOf, type ResourceType } from '@tenon/api'
import {
  type Cache,
  type Change,
  type DeleteOptions,
  type EventInput,
  type EventRecorder,
  type KubeClient,
  KubeError,
  type ListOptions,
  type ObjectKey,
  type PatchOptions,
} from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'

type Json = Record<string, unknown>

/** A client and caches that see every write at once. Kinds are distinguished by their plural. */
export class MemoryKube implements KubeClient {
  version = 'v1.34.1'
  readonly writes: { readonly verb: string; readonly path: string; readonly body?: unknown }[] = []
  readonly events: EventInput[] = []
  readonly recorder: EventRecorder = { record: (event) => this.events.push(event) }
  /**
   * Errors for the next matching writes; with `hasEffect` the write is done and only its response is lost.
   */
  readonly failures: {
    readonly verb: string
    readonly plural: string
    readonly error: KubeError
    readonly hasEffect?: true
  }[] = []
  readonly #objects = new Map<string, { readonly type: ResourceType; object: KubeObject }>()
  readonly #listeners = new Map<string, Set<(change: Change<KubeObject>) => void>>()
  readonly #clock: Clock
  #sequence = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  put<T extends KubeObject>(type: ResourceType<T>, object: NewObject<T>): T {
    const name = object.metadata.name as string
    const key = pathOf(type, object.metadata.namespace, name)
    const old = this.#objects.get(key)?.object as T | undefined
    const stored = {
      ...object,
      metadata: {
        creationTimestamp: rfc3339(this.#clock.now()),
        uid: `uid-${name}`,
        generation: 1,
        ...object.metadata,
        resourceVersion: String(++this.#sequence),
      },
    } as unknown as T
    this.#objects.set(key, { type: type, object: stored })
    this.#announce(
      type,
      old === undefined ? { kind: 'added', object: stored } : { kind: 'updated', object: stored, old },
    )
    return stored
  }

  async get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): Promise<T | undefined> {
    return this.#objects.get(pathOf(type, key.namespace, key.name))?.object as T | undefined
  }

  async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<T[]> {
    return this.all(type).filter(
      (object) =>
        (options.namespace === undefined || object.metadata.namespace === options.namespace) &&
        (options.labelSelector === undefined ||
          matchesSelector(options.labelSelector, object.metadata.labels ?? {})),
    )
  }

  all<T extends KubeObject>(type: ResourceType<T>): T[] {
    return [...this.#objects.values()]
      .filter((entry) => entry.type.plural === type.plural)
      .map((entry) => entry.object as T)
  }

  async create<T extends KubeObject>(type: ResourceType<T>, object: NewObject<T>): Promise<T> {
    const name = object.metadata.name ?? ''
    return await this.#write('create', type, { name, body: object }, async () => {
      if ((await this.get(type, object.metadata as ObjectKey)) !== undefined)
        throw new KubeError('alreadyExists', 409, `${type.plural} "${name}" already exists`)
      return this.put(type, object)
    })
  }

  async update<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T> {
    const { name, resourceVersion } = object.metadata
    return await this.#write('update', type, { name, body: object }, async () => {
      const old = await this.get(type, object.metadata)
      if (old === undefined) throw new KubeError('notFound', 404, `${name} not found`)
      if (resourceVersion !== old.metadata.resourceVersion)
        throw new KubeError('conflict', 409, 'the object has been modified')
      return this.put(type, object)
    })
  }

  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options: PatchOptions = {},
  ): Promise<T> {
    return await this.#write('patch', type, { name: key.name, body: patch }, async () => {
      const old = await this.get(type, key)
      if (old === undefined) throw new KubeError('notFound', 404, `${key.name} not found`)
      if (options.resourceVersion !== undefined && options.resourceVersion !== old.metadata.resourceVersion)
        throw new KubeError('conflict', 409, 'the object has been modified')
      const merged = merge(old as unknown as Json, patch as Json) as unknown as T
      if (merged.metadata.deletionTimestamp === undefined || (merged.metadata.finalizers ?? []).length > 0)
        return this.put(type, ofNextGeneration(old, merged))
      this.#remove(type, merged)
      return merged
    })
  }

  async delete(type: ResourceType, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    await this.#write('delete', type, { name: key.name }, async () => {
      const object = await this.get(type, key)
      if (object === undefined) throw new KubeError('notFound', 404, `${key.name} not found`)
      const { preconditionUid = object.metadata.uid, preconditionResourceVersion } = options
      const { uid, resourceVersion } = object.metadata
      if (preconditionUid !== uid || (preconditionResourceVersion ?? resourceVersion) !== resourceVersion)
        throw new KubeError('conflict', 409, 'the object is another one, or has been modified')
      if ((object.metadata.finalizers ?? []).length === 0) this.#remove(type, object)
      else
        this.put(type, {
          ...object,
          metadata: { ...object.metadata, deletionTimestamp: rfc3339(this.#clock.now()) },
        })
    })
  }

  async evict(): Promise<void> {}

  async serverVersion(): Promise<string> {
    return this.version
  }

  cache<T extends KubeObject>(type: ResourceType<T>): Cache<T> {
    const all = () => this.all(type)
    const listeners = this.#listenersOf(type)
    return {
      type,
      get: (key) => this.#objects.get(pathOf(type, key.namespace, key.name))?.object as T | undefined,
      list: all,
      get size() {
        return all().length
      },
      addIndex() {},
      byIndex: () => [],
      relist() {},
      onChange(listener) {
        const wrapped = listener as (change: Change<KubeObject>) => void
        listeners.add(wrapped)
        for (const object of all()) listener({ kind: 'added', object })
        return () => listeners.delete(wrapped)
      },
      synced: async () => {},
      isSynced: true,
      isListedAgain: false,
      isRefused: false,
    }
  }

  #remove(type: ResourceType, object: KubeObject): void {
    this.#objects.delete(pathOf(type, object.metadata.namespace, object.metadata.name))
    this.#announce(type, { kind: 'deleted', object })
  }

  /** Records a write and does it, unless one of {@link failures} replaces it or its response. */
  async #write<T>(
    verb: string,
    type: ResourceType,
    { name, body }: { readonly name: string; readonly body?: unknown },
    act: () => Promise<T>,
  ): Promise<T> {
    this.writes.push({ verb, path: pathOf(type, undefined, name), ...(body !== undefined && { body }) })
    const at = this.failures.findIndex((failure) => failure.verb === verb && failure.plural === type.plural)
    const [failure] = at === -1 ? [] : this.failures.splice(at, 1)
    if (failure !== undefined && failure.hasEffect !== true) throw failure.error
    const answer = await act()
    if (failure !== undefined) throw failure.error
    return answer
  }

  #listenersOf(type: ResourceType): Set<(change: Change<KubeObject>) => void> {
    const known = this.#listeners.get(type.plural) ?? new Set()
    this.#listeners.set(type.plural, known)
    return known
  }

  #announce(type: ResourceType, change: Change<KubeObject>): void {
    for (const listener of this.#listenersOf(type)) listener(change)
  }
}

/** API servers count the changes of a spec. */
function ofNextGeneration<T extends KubeObject>(old: T, now: T): T {
  const specOf = (object: KubeObject & { readonly spec?: unknown }) => JSON.stringify(object.spec)
  if (specOf(old) === specOf(now)) return now
  return { ...now, metadata: { ...now.metadata, generation: (old.metadata.generation ?? 0) + 1 } }
}

function merge(target: Json, patch: Json): Json {
  const result = new Map(Object.entries(target))
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key)
    else if (typeof value === 'object' && !Array.isArray(value))
      result.set(key, merge((result.get(key) ?? {}) as Json, value as Json))
    else result.set(key, value)
  }
  return Object.fromEntries(result)
}
