import type { KubeObject, ResourceType } from '@tenon/api'
import type { LocalApi } from '../../contract.ts'

/** `namespace/name`, or `name` for cluster-scoped objects. */
export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** The inverse of {@link keyOf}. */
export function splitKey(key: string): { namespace: string | undefined; name: string } {
  const slash = key.indexOf('/')
  if (slash < 0) return { namespace: undefined, name: key }
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** Objects by a derived value. */
export interface Index<T> {
  /** In no particular order. */
  of(value: string): IterableIterator<T>
  count(value: string): number
  values(): IterableIterator<string>
}

/** `now` is absent if the object is gone, `before` if it is new; `latest` is the newer of both. */
export type ChangeHandler<T> = (now: T | undefined, before: T | undefined, latest: T) => void

interface IndexEntry<T> {
  readonly valuesOf: (object: T) => readonly string[]
  readonly buckets: Map<string, Map<string, T>>
}

/** Index functions that controllers share. */
export function namespaceOf(object: KubeObject): readonly string[] {
  return [object.metadata.namespace ?? '']
}

/**
 * All objects of one kind with indexes. Events only say what to read: the entry always comes from the API, and the
 * controllers' own writes are stored at once. So a reconcile sees what an earlier one created even if events lag, and
 * expected events need not be counted.
 */
export class ObjectCache<T extends KubeObject> {
  readonly #api: LocalApi
  readonly #type: ResourceType<T>
  readonly #objects = new Map<string, T>()
  readonly #indexes: IndexEntry<T>[] = []
  readonly #handlers: ChangeHandler<T>[] = []
  #unsubscribe: (() => void) | undefined

  constructor(api: LocalApi, type: ResourceType<T>) {
    this.#api = api
    this.#type = type
  }

  /** The index by `valuesOf`, shared by all callers with the same function; only before {@link fill}. */
  index(valuesOf: (object: T) => readonly string[]): Index<T> {
    const known = this.#indexes.find((index) => index.valuesOf === valuesOf)
    const buckets = known?.buckets ?? new Map<string, Map<string, T>>()
    if (known === undefined) this.#indexes.push({ valuesOf, buckets })
    return {
      of: (value) => (buckets.get(value) ?? new Map<string, T>()).values(),
      count: (value) => buckets.get(value)?.size ?? 0,
      values: () => buckets.keys(),
    }
  }

  /** Adds a handler of changes; handlers should only enqueue keys. */
  onChange(handler: ChangeHandler<T>): void {
    this.#handlers.push(handler)
  }

  /** Fills the cache from the API, then follows it. */
  fill(): void {
    for (const object of this.#api.list(this.#type)) this.#set(keyOf(object), object)
  }

  follow(): void {
    const look = (object: T) => this.refresh(object.metadata.namespace, object.metadata.name)
    this.#unsubscribe = this.#api.subscribe(this.#type, { added: look, updated: look, deleted: look })
  }

  stop(): void {
    this.#unsubscribe?.()
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  values(): IterableIterator<T> {
    return this.#objects.values()
  }

  /** Reads one object from the API into the cache. */
  refresh(namespace: string | undefined, name: string): void {
    const key = namespace === undefined ? name : `${namespace}/${name}`
    this.#set(key, this.#api.get(this.#type, namespace, name))
  }

  #set(key: string, now: T | undefined): void {
    const before = this.#objects.get(key)
    const same =
      now?.metadata.uid === before?.metadata.uid &&
      now?.metadata.resourceVersion === before?.metadata.resourceVersion
    if (same) return
    if (now !== undefined && before !== undefined && now.metadata.uid !== before.metadata.uid) {
      this.#enter(key, undefined, before)
      this.#enter(key, now, undefined)
      return
    }
    this.#enter(key, now, before)
  }

  #enter(key: string, now: T | undefined, before: T | undefined): void {
    const latest = now ?? before
    if (latest === undefined) return
    if (now === undefined) this.#objects.delete(key)
    else this.#objects.set(key, now)
    for (const index of this.#indexes) reindex(index, key, now, before)
    for (const handler of this.#handlers) handler(now, before, latest)
  }
}

const none: readonly string[] = []

function reindex<T>(index: IndexEntry<T>, key: string, now: T | undefined, before: T | undefined): void {
  const values = now === undefined ? none : index.valuesOf(now)
  if (before !== undefined) {
    for (const value of index.valuesOf(before)) {
      if (values.includes(value)) continue
      const bucket = index.buckets.get(value)
      bucket?.delete(key)
      if (bucket?.size === 0) index.buckets.delete(value)
    }
  }
  for (const value of values) {
    let bucket = index.buckets.get(value)
    if (bucket === undefined) {
      bucket = new Map()
      index.buckets.set(value, bucket)
    }
    bucket.set(key, now as T)
  }
}
