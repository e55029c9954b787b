/** The objects of one cache, with indexes and listeners; independent of servers. */
import { compareResourceVersions, type KubeObject } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Change, ObjectKey } from '../contract.ts'
import type { TurnPace } from '../turn-pace.ts'

/** A stored object, with what identifies its state on the server before trimming. */
export interface Entry<T> {
  readonly key: string
  /** Undefined if the transformation leaves the object out. */
  readonly object: T | undefined
  readonly uid: string
  readonly resourceVersion: string
}

/** An entry with its position: later states of an object keep its position; new objects come last. */
interface Placed<T> extends Entry<T> {
  readonly object: T
  readonly place: number
}

interface Index<T> {
  readonly values: (object: T) => readonly string[]
  /** By value, then by key. */
  readonly found: Map<string, Map<string, T>>
}

type Listener<T> = (change: Change<T>) => void

/** A listener, and the position up to which existing objects were announced to it. */
interface Follower<T> {
  readonly listener: Listener<T>
  knownTo: number
}

export interface StoreOptions<T> {
  /** Receives the stored object too. Returns undefined to leave an object out. */
  readonly transform?: (object: T, held?: T) => T | undefined
  /** Called with errors of listeners, indexes and the transformation, which are bugs. */
  readonly onBug: (error: unknown) => void
  /** If absent, existing objects are announced to listeners at once, however many they are. */
  readonly pacing?: Pacing
}

/** How stores announce existing objects; stores with the same pace take turns. */
interface Pacing {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly pace: TurnPace
}

/** Longest time of announcements without a pause: what a pace allows per turn. */
const announcingMs = 5

export class Store<T extends KubeObject> {
  readonly #options: StoreOptions<T>
  /** In order of position. */
  #received = 0
  readonly #entries = new Map<string, Placed<T>>()
  readonly #indexes = new Map<string, Index<T>>()
  #lastPlace = 0
  /** Replaced instead of changed, so that listeners may come and go during a round of calls. */
  #followers: readonly Follower<T>[] = []
  /** Announcements of existing objects that are still to do, one listener after the other. */
  readonly #announcements: Iterator<unknown>[] = []

  constructor(options: StoreOptions<T>) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** How many object states were received, including those that changed nothing. */
  get received(): number {
    return this.#received
  }

  get(key: ObjectKey): T | undefined {
    return this.#entries.get(keyText(key))?.object
  }

  list(): T[] {
    return Array.from(this.#entries.values(), (entry) => entry.object)
  }

  at(key: string): T | undefined {
    return this.#entries.get(key)?.object
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
    const follower: Follower<T> = {
      listener: (change) => {
        if (isListening) this.#guard(undefined, () => listener(change))
      },
      knownTo: 0,
    }
    this.#followers = [...this.#followers, follower]
    this.#announcements.push(this.#announcing(follower))
    if (this.#announcements.length === 1) {
      const { pacing } = this.#options
      if (pacing?.pace.isOver === true) this.#announceLater(pacing.pace)
      else this.#announce()
    }
    return () => {
      isListening = false
      this.#followers = this.#followers.filter((other) => other !== follower)
    }
  }

  /**
   * Announces existing objects to a listener. Objects that change meanwhile are announced as they are when it is their
   * turn.
   */
  *#announcing(follower: Follower<T>): Generator<undefined, void, undefined> {
    for (const { object, place } of this.#entries.values()) {
      follower.knownTo = place
      follower.listener({ kind: 'added', object })
      yield
    }
    follower.knownTo = Number.POSITIVE_INFINITY
  }

  #announce(): void {
    const { pacing } = this.#options
    const startedAt = pacing?.clock.monotonic() ?? 0
    for (let [first] = this.#announcements; first !== undefined; [first] = this.#announcements) {
      while (first.next().done !== true) {
        if (pacing === undefined) continue
        const tookMs = pacing.clock.monotonic() - startedAt
        if (tookMs < announcingMs) continue
        pacing.pace.spend(tookMs)
        this.#announceLater(pacing.pace)
        return
      }
      this.#announcements.shift()
    }
  }

  #announceLater(pace: TurnPace): void {
    pace.wait(() => {
      this.#announce()
    })
  }

  /**
   * The entry for an object, without storing it. An unchanged object is not trimmed again, so that a list of known
   * objects needs hardly any memory.
   */
  entryOf(raw: T): Entry<T> {
    this.#received++
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

  /** Stores a received state, unless it is not newer than the stored one. */
  put(raw: T): void {
    const held = this.#entries.get(keyText(raw.metadata))
    if (held !== undefined && isStale(raw.metadata.resourceVersion ?? '', held)) return
    this.#keep(this.entryOf(raw), held)
  }

  /** Stores an object of a complete list, even if it is older than the stored one. */
  putListed(entry: Entry<T>): void {
    const held = this.#entries.get(entry.key)
    if (held?.uid === entry.uid && held.resourceVersion === entry.resourceVersion) return
    this.#keep(entry, held)
  }

  /**
   * Whether a complete list with `entry` at this key lacks the stored object, or has an older version of it.
   */
  isLost(key: string, entry: Entry<T> | undefined): boolean {
    const held = this.#entries.get(key)
    if (held === undefined || entry === held) return false
    return entry === undefined || isStale(entry.resourceVersion, held)
  }

  /** Whether an object that was read by name is the stored one, at this or a later version. */
  confirms({ metadata }: T): boolean {
    const held = this.#entries.get(keyText(metadata))
    if (held === undefined || held.uid !== (metadata.uid ?? '')) return false
    const version = metadata.resourceVersion ?? ''
    return version === held.resourceVersion || !isStale(version, held)
  }

  #keep(entry: Entry<T>, held: Placed<T> | undefined): void {
    if (held !== undefined && held.uid !== entry.uid) {
      // Another object of the same name: the deletion of the first one was missed.
      this.#drop(held, held.object)
      this.#keep(entry, undefined)
      return
    }
    const { key, object } = entry
    if (object === undefined) {
      if (held !== undefined) this.#drop(held, held.object)
      return
    }
    const place = held?.place ?? ++this.#lastPlace
    this.#entries.set(key, { ...entry, object, place })
    for (const index of this.#indexes.values()) {
      const values = this.#valuesIn(index, object)
      if (held !== undefined) this.#removeFromIndex(index, key, held.object, values)
      this.#addToIndex(index, key, object, values)
    }
    this.#tell(
      held === undefined ? { kind: 'added', object } : { kind: 'updated', object, old: held.object },
      place,
    )
  }

  /** Removes an object; `last` is its final state, unless it is older than the stored one. */
  remove(last: T): void {
    const key = keyText(last.metadata)
    const held = this.#entries.get(key)
    if (held === undefined) return
    const order = compareResourceVersions(last.metadata.resourceVersion ?? '', held.resourceVersion)
    if (order !== undefined && order < 0) return
    const isSame = held.uid === (last.metadata.uid ?? '')
    this.#drop(held, (isSame ? this.#transformed(last, held.object) : undefined) ?? held.object)
  }

  /** Removes an object that a complete list lacks. */
  removeKey(key: string): void {
    const held = this.#entries.get(key)
    if (held !== undefined) this.#drop(held, held.object)
  }

  #drop(held: Placed<T>, last: T): void {
    this.#entries.delete(held.key)
    for (const index of this.#indexes.values()) this.#removeFromIndex(index, held.key, held.object)
    this.#tell({ kind: 'deleted', object: last }, held.place)
  }

  #tell(change: Change<T>, place: number): void {
    for (const { listener, knownTo } of this.#followers) if (place <= knownTo) listener(change)
  }

  #transformed(raw: T, held: T | undefined): T | undefined {
    const { transform } = this.#options
    return transform === undefined ? raw : this.#guard<T | undefined>(raw, () => transform(raw, held))
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

  /** @param kept values that stay indexed, so that the next state keeps their position. */
  #removeFromIndex(index: Index<T>, key: string, object: T, kept: readonly string[] = []): void {
    for (const value of this.#valuesIn(index, object)) {
      if (kept.includes(value)) continue
      const found = index.found.get(value)
      found?.delete(key)
      if (found?.size === 0) index.found.delete(value)
    }
  }

  /** A bug in one listener must not stop the cache for others. */
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
