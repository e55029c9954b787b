import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, ResourceType } from '@tenon/api'
import { ApiError, type LocalApi, type LocalDeleteOptions } from '../../contract.ts'
import { ObjectCache } from './object-cache.ts'

/**
 * Reads and writes of the controllers: the API, with caches that see every write at once. As the API is synchronous,
 * read-modify-write needs no conflict handling.
 */
export class ClusterStore {
  readonly api: LocalApi
  readonly #caches = new Map<string, ObjectCache<KubeObject>>()

  constructor(api: LocalApi) {
    this.api = api
  }

  /** The shared cache of a kind. */
  cache<T extends KubeObject>(type: ResourceType<T>): ObjectCache<T> {
    const id = `${type.group}/${type.plural}`
    let cache = this.#caches.get(id)
    if (cache === undefined) {
      cache = new ObjectCache<KubeObject>(this.api, type)
      this.#caches.set(id, cache)
    }
    return cache as unknown as ObjectCache<T>
  }

  /** Fills all caches, then follows the API, so that no reconcile runs on a partial state. */
  start(): void {
    for (const cache of this.#caches.values()) cache.fill()
    for (const cache of this.#caches.values()) cache.follow()
  }

  stop(): void {
    for (const cache of this.#caches.values()) cache.stop()
  }

  get<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string | undefined,
    name: string,
  ): T | undefined {
    return this.api.get(type, namespace, name)
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    const created = this.api.create(type, object)
    this.#refresh(type, created.metadata.namespace, created.metadata.name)
    return created
  }

  /** Creates an object unless one of its name exists; returns whether it did. */
  createIfAbsent<T extends KubeObject>(type: ResourceType<T>, object: T): boolean {
    if (this.api.get(type, object.metadata.namespace, object.metadata.name) !== undefined) return false
    this.create(type, object)
    return true
  }

  /**
   * Replaces the latest version of `object` by the result of `change`, unless the object is gone or replaced, or
   * nothing changes.
   */
  modify<T extends KubeObject>(type: ResourceType<T>, object: T, change: (latest: T) => T): T | undefined {
    const latest = this.#latest(type, object)
    if (latest === undefined) return undefined
    const changed = change(latest)
    if (changed === latest || isDeepStrictEqual(changed, latest)) return latest
    const updated = this.api.update(type, changed)
    this.#refresh(type, object.metadata.namespace, object.metadata.name)
    return updated
  }

  /** Writes `status` if it differs; returns whether it wrote. */
  setStatus<T extends KubeObject>(type: ResourceType<T>, object: T, status: object): boolean {
    const latest = this.#latest<T & { readonly status?: object }>(type, object)
    if (latest === undefined || isDeepStrictEqual(latest.status, status)) return false
    this.api.updateStatus(type, { ...latest, status })
    this.#refresh(type, object.metadata.namespace, object.metadata.name)
    return true
  }

  /** Deletes the object unless it was replaced; returns whether it existed. */
  delete<T extends KubeObject>(type: ResourceType<T>, object: T, options: LocalDeleteOptions = {}): boolean {
    const latest = this.#latest(type, object)
    if (latest === undefined) return false
    const { namespace, name } = object.metadata
    try {
      this.api.delete(type, namespace, name, options)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error
    }
    this.#refresh(type, namespace, name)
    return true
  }

  #latest<T extends KubeObject>(type: ResourceType<T>, object: T): T | undefined {
    const latest = this.api.get(type, object.metadata.namespace, object.metadata.name)
    return latest?.metadata.uid === object.metadata.uid ? latest : undefined
  }

  #refresh(type: ResourceType, namespace: string | undefined, name: string): void {
    this.#caches.get(`${type.group}/${type.plural}`)?.refresh(namespace, name)
  }
}
