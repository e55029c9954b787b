/** The objects of one cache, their indexes and those who listen; knows nothing of servers. */
import type { KubeObject } from '@tenon/api'
import type { Change, ObjectKey } from '../contract.ts'
import { compareResourceVersions } from './resource-version.ts'

/** An object as kept, with what identifies its state on the server before any trimming. */
export interface Entry<T> {
  readonly key: string
  readonly object: T
  readonly uid: string
  readonly resourceVersion: string
}

interface Index<T> {
  readonly values: (object: T) => readonly string[]
  /** By value and key. */
  readonly found: Map<string, Map<string, T>>
}

type Listener<T> = (change: Change<T>) => void

export interface StoreOptions<T> {
  /** Told what is kept of the object's earlier state. */
  readonly transform?: (object: T, held?: T) => T
  /** Told of anything a listener, an index or the transformation throws; these are bugs. */
  readonly onBug: (error: unknown) => void
}

export class Store<T extends KubeObject> {
  readonly #options: StoreOptions<T>
  readonly #entries = new Map<string, Entry<T>>()
  readonly #indexes = new Map<string, Index<T>>()
  /** Replaced, never changed, so that a round of calls is not disturbed by who comes and goes. */
  #listeners: readonly Listener<T>[] = []

  constructor(options: StoreOptions<T>) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: ObjectKey): T | undefined {
    return this.#entries.get(keyText(key))?.object
  }

  list(): T[] {
    return Array.from(this.#entries.values(), (entry) => entry.object)
  }

  keys(): string[] {
    return [...this.#entries.keys()]
  }

  addIndex(name: string, values: (object: T) => readonly string[]): void {
    if (this.#indexes.has(name)) throw new Error(`the index ${name} exists already`)
    const index: Index<T> = { values, found: new Map() }
    this.#indexes.set(name, index)
    for (const [key, { object }] of this.#entries) this.#addToIndex(index, key, object)
  }

  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name)
    if (index === undefined) throw new Error(`there is no index ${name}`)
    const found = index.found.get(value)
    return found === undefined ? [] : [...found.values()]
  }

  onChange(listener: Listener<T>): () => void {
    let isListening = true
    const guarded: Listener<T> = (change) => {
      if (isListening) this.#guard(undefined, () => listener(change))
    }
    const present = this.list()
    this.#listeners = [...this.#listeners, guarded]
    for (const object of present) guarded({ kind: 'added', object })
    return () => {
      isListening = false
      this.#listeners = this.#listeners.filter((other) => other !== guarded)
    }
  }

  /**
   * The object as it would be kept, without keeping it yet. One that is held in the same state
   * already is not trimmed again, so that a list of what is known needs hardly any memory.
   */
  entryOf(raw: T): Entry<T> {
    const key = keyText(raw.metadata)
    const uid = raw.metadata.uid ?? ''
    const resourceVersion = raw.metadata.resourceVersion ?? ''
    const held = this.#entries.get(key)
    const isHeld = held?.uid === uid && held.resourceVersion === resourceVersion && resourceVersion !== ''
    if (isHeld) return held
    return {
      key,
      object: this.#transformed(raw, held?.uid === uid ? held.object : undefined),
      uid,
      resourceVersion,
    }
  }

  /** Takes in a state the server told; one that is not newer than what is held changes nothing. */
  put(raw: T): void {
    const held = this.#entries.get(keyText(raw.metadata))
    if (held !== undefined && isStale(raw.metadata.resourceVersion ?? '', held)) return
    this.#keep(this.entryOf(raw), held)
  }

  /** The same for an object that a complete list shows: a list is right even when it goes back. */
  putListed(entry: Entry<T>): void {
    const held = this.#entries.get(entry.key)
    if (held?.uid === entry.uid && held.resourceVersion === entry.resourceVersion) return
    this.#keep(entry, held)
  }

  #keep(entry: Entry<T>, held: Entry<T> | undefined): void {
    if (held !== undefined && held.uid !== entry.uid) {
      // Another object of the same name: the end of the first one went unseen.
      this.#drop(held, held.object)
      this.#keep(entry, undefined)
      return
    }
    const { key, object } = entry
    this.#entries.set(key, entry)
    for (const index of this.#indexes.values()) {
      const values = this.#valuesIn(index, object)
      if (held !== undefined) this.#removeFromIndex(index, key, held.object, values)
      this.#addToIndex(index, key, object, values)
    }
    this.#tell(held === undefined ? { kind: 'added', object } : { kind: 'updated', object, old: held.object })
  }

  /** Takes in the end of an object; `last` is its final state, unless that is older than what is held. */
  remove(last: T): void {
    const key = keyText(last.metadata)
    const held = this.#entries.get(key)
    if (held === undefined) return
    const order = compareResourceVersions(last.metadata.resourceVersion ?? '', held.resourceVersion)
    if (order !== undefined && order < 0) return
    const isSame = held.uid === (last.metadata.uid ?? '')
    this.#drop(held, isSame ? this.#transformed(last, held.object) : held.object)
  }

  /** Ends an object that a complete list does not show any more. */
  removeKey(key: string): void {
    const held = this.#entries.get(key)
    if (held !== undefined) this.#drop(held, held.object)
  }

  #drop(held: Entry<T>, last: T): void {
    this.#entries.delete(held.key)
    for (const index of this.#indexes.values()) this.#removeFromIndex(index, held.key, held.object)
    this.#tell({ kind: 'deleted', object: last })
  }

  #tell(change: Change<T>): void {
    for (const listener of this.#listeners) listener(change)
  }

  #transformed(raw: T, held: T | undefined): T {
    const { transform } = this.#options
    return transform === undefined ? raw : this.#guard(raw, () => transform(raw, held))
  }

  #valuesIn(index: Index<T>, object: T): readonly string[] {
    return this.#guard([], () => index.values(object))
  }

  #addToIndex(index: Index<T>, key: string, object: T, values = this.#valuesIn(index, object)): void {
    for (const value of values) {
      const found = index.found.get(value)
      if (found === undefined) index.found.set(value, new Map([[key, object]]))
      else found.set(key, object)
    }
  }

  /** @param kept values that stay, so that the next state takes the place of this one. */
  #removeFromIndex(index: Index<T>, key: string, object: T, kept: readonly string[] = []): void {
    for (const value of this.#valuesIn(index, object)) {
      if (kept.includes(value)) continue
      const found = index.found.get(value)
      found?.delete(key)
      if (found?.size === 0) index.found.delete(value)
    }
  }

  /** One consumer's bug must not stop the cache for the others. */
  #guard<R>(otherwise: R, work: () => R): R {
    try {
      return work()
    } catch (error) {
      this.#options.onBug(error)
      return otherwise
    }
  }
}

/** `namespace/name`, or `name` for cluster-scoped objects. */
export function keyText(key: ObjectKey): string {
  return key.namespace === undefined || key.namespace === '' ? key.name : `${key.namespace}/${key.name}`
}

function isStale<T>(resourceVersion: string, held: Entry<T>): boolean {
  const order = compareResourceVersions(resourceVersion, held.resourceVersion)
  return order !== undefined && order <= 0
}
