import type { Clock } from '@tenon/runtime'
import type { StoredObject } from '../contract.ts'
import type { Change, Retention } from './change-log.ts'
import { Collection } from './collection.ts'

/** Default history of a collection: five minutes or 20 000 changes. */
const defaultRetention: Retention = { maxChanges: 20_000, maxAgeMs: 5 * 60_000 }

/** A saved state to start from. */
export interface SavedState {
  readonly revision: number
  readonly objects: Iterable<{
    readonly collection: string
    readonly key: string
    readonly object: StoredObject
  }>
}

/** What a store starts with. */
export interface StoreOptions {
  readonly clock: Clock
  readonly retention?: Retention
  readonly initial?: SavedState
}

/** Called for every commit, synchronously and in order; must not write. */
export type CommitListener = (collection: Collection, change: Change) => void

/**
 * All objects of the cluster in memory. One counter numbers every write; its value is the `resourceVersion` of the
 * written object.
 */
export class Store {
  readonly #clock: Clock
  readonly #retention: Retention
  readonly #collections = new Map<string, Collection>()
  readonly #listeners = new Set<CommitListener>()
  /** Revision of the loaded state, before which there is no history. */
  readonly #baseRevision: number
  #revision: number

  constructor(options: StoreOptions) {
    this.#clock = options.clock
    this.#retention = options.retention ?? defaultRetention
    this.#revision = options.initial?.revision ?? 0
    this.#baseRevision = this.#revision
    for (const { collection, key, object } of options.initial?.objects ?? [])
      this.collection(collection).restore(key, object)
  }

  /** Revision of the newest write. */
  get revision(): number {
    return this.#revision
  }

  /** The collection of a resource; created if necessary. */
  collection(id: string): Collection {
    let collection = this.#collections.get(id)
    if (collection === undefined) {
      collection = new Collection(id, this.#retention, this.#baseRevision)
      this.#collections.set(id, collection)
    }
    return collection
  }

  collections(): Iterable<Collection> {
    return this.#collections.values()
  }

  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /**
   * Writes an object.
   * @returns the stored object, with its new `resourceVersion`.
   */
  put(collection: Collection, key: string, object: StoredObject): StoredObject {
    const previous = collection.get(key)
    return this.#commit(collection, key, object, previous, previous === undefined ? 'ADDED' : 'MODIFIED')
  }

  /**
   * Removes an object.
   * @returns its last state (`final` if given) with the deletion's revision.
   */
  remove(collection: Collection, key: string, final?: StoredObject): StoredObject {
    const previous = collection.get(key)
    if (previous === undefined) throw new Error(`no object ${key} in ${collection.id}`)
    return this.#commit(collection, key, final ?? previous, previous, 'DELETED')
  }

  #commit(
    collection: Collection,
    key: string,
    content: StoredObject,
    previous: StoredObject | undefined,
    type: Change['type'],
  ): StoredObject {
    const revision = ++this.#revision
    const object = { ...content, metadata: { ...content.metadata, resourceVersion: String(revision) } }
    const change: Change = { revision, type, key, object, previous, atMs: this.#clock.now() }
    collection.apply(change)
    for (const listener of this.#listeners) listener(collection, change)
    return object
  }
}
