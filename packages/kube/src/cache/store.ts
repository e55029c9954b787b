/** The objects of one cache with indexes and listeners; independent of servers. */
import { compareResourceVersions, type KubeObject } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Change, ObjectKey } from '../contract.ts'
import type { TurnPace } from '../turn-pace.ts'

/** An object as kept, with what identifies its state on the server before any trimming. */
export interface Entry<T> {
  readonly key: string
  /** Undefined when the object is not kept. */
  readonly object: T | undefined
  readonly uid: string
  readonly resourceVersion: string
}

/** An entry in its place: a later one of the same object has the same place, and what is new comes last. */
interface Placed<T> extends Entry<T> {
  readonly object: T
  readonly place: number
}

interface Index<T> {
  readonly values: (object: T) => readonly string[]
  /** By value and key. */
  readonly found: Map<string, Map<string, T>>
}

type Listener<T> = (change: Change<T>) => void

/** Who is told of changes, and up to which place it has been told what there is. */
interface Follower<T> {
  readonly listener: Listener<T>
  knownTo: number
}

export interface StoreOptions<T> {
  /** Told what is kept of the object's earlier state; an object of which it makes nothing is not kept. */
  readonly transform?: (object: T, held?: T) => T | undefined
  /** Told of anything a listener, an index or the transformation throws; these are bugs. */
  readonly onBug: (error: unknown) => void
  /** Without one, listeners are told of all that is present at once, however much it is. */
  readonly pacing?: Pacing
}

/** How stores tell of what is present, if it is much: those that share a pace take turns. */
interface Pacing {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly pace: TurnPace
}

/** Nobody is told of what is present for longer at a stretch, which is all that a pace lets pass in a turn. */
const announcingMs = 5

export class Store<T extends KubeObject> {
  readonly #options: StoreOptions<T>
  /** In order of their places. */
  #told = 0
  readonly #entries = new Map<string, Placed<T>>()
  readonly #indexes = new Map<string, Index<T>>()
  #lastPlace = 0
  /** Replaced, never changed, so that a round of calls is not disturbed by who comes and goes. */
  #followers: readonly Follower<T>[] = []
  /** What followers have yet to be told of what is present, one follower after the other. */
  readonly #announcements: Iterator<unknown>[] = []

  constructor(options: StoreOptions<T>) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** How many states of objects the server has told, those that changed nothing included. */
  get told(): number {
    return this.#told
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

  /** Tells a follower what there is. What comes or changes meanwhile is told when it is its turn. */
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
   * The object as it would be kept, without keeping it yet. One that is held in the same state
   * already is not trimmed again, so that a list of what is known needs hardly any memory.
   */
  entryOf(raw: T): Entry<T> {
    this.#told++
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

  /** Whether a complete list that shows `entry` in the place of an object lacks the object, or is older. */
  isLost(key: string, entry: Entry<T> | undefined): boolean {
    const held = this.#entries.get(key)
    if (held === undefined || entry === held) return false
    return entry === undefined || isStale(entry.resourceVersion, held)
  }

  /** Whether an object that was read by its name is the one that is held, in this state or a newer one. */
  confirms({ metadata }: T): boolean {
    const held = this.#entries.get(keyText(metadata))
    if (held === undefined || held.uid !== (metadata.uid ?? '')) return false
    const version = metadata.resourceVersion ?? ''
    return version === held.resourceVersion || !isStale(version, held)
  }

  #keep(entry: Entry<T>, held: Placed<T> | undefined): void {
    if (held !== undefined && held.uid !== entry.uid) {
      // Another object of the same name: the end of the first one went unseen.
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

  /** Takes in the end of an object; `last` is its final state, unless that is older than what is held. */
  remove(last: T): void {
    const key = keyText(last.metadata)
    const held = this.#entries.get(key)
    if (held === undefined) return
    const order = compareResourceVersions(last.metadata.resourceVersion ?? '', held.resourceVersion)
    if (order !== undefined && order < 0) return
    const isSame = held.uid === (last.metadata.uid ?? '')
    this.#drop(held, (isSame ? this.#transformed(last, held.object) : undefined) ?? held.object)
  }

  /** Ends an object that a complete list does not show any more. */
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
