import type { StoredObject } from '../contract.ts'
import { type Change, ChangeLog, type Retention } from './change-log.ts'
import { SortedKeys } from './sorted-keys.ts'

/** The key of an object in its collection. Keys sort by namespace, then by name. */
export function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}\u0000${name}`
}

/** Prefix of all keys of a namespace. */
export function namespacePrefix(namespace: string): string {
  return `${namespace}\u0000`
}

/** Where a scan begins, and which state it reads. */
export interface ScanOptions {
  /** Only keys with this prefix. */
  readonly prefix?: string
  /** Only keys greater than this. */
  readonly after?: string
  /** The state at this revision; default: the latest. */
  readonly revision?: number
}

/** All objects of one resource, in key order, with their recent history. */
export class Collection {
  readonly id: string
  readonly #objects = new Map<string, StoredObject>()
  readonly #keys = new SortedKeys()
  readonly #log: ChangeLog
  readonly #listeners = new Set<(change: Change) => void>()

  constructor(id: string, retention: Retention, baseRevision: number) {
    this.id = id
    this.#log = new ChangeLog(retention, baseRevision)
  }

  get size(): number {
    return this.#objects.size
  }

  get compactedRevision(): number {
    return this.#log.compactedRevision
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key)
  }

  /**
   * Calls `visit` for objects in key order until it returns false.
   * @returns false if the revision is compacted.
   */
  scan(options: ScanOptions, visit: (object: StoredObject, key: string) => boolean): boolean {
    const changedSince =
      options.revision === undefined ? new Map<string, undefined>() : this.#statesAt(options.revision)
    if (changedSince === undefined) return false
    const prefix = options.prefix ?? ''
    const start = options.after === undefined ? prefix : `${options.after}\u0000`
    if (changedSince.size === 0) this.#scanLatest(start, prefix, visit)
    else this.#scanPast(changedSince, start, prefix, visit)
    return true
  }

  /** Changes after a revision, oldest first; `undefined` if they are compacted. */
  changesAfter(revision: number, limit?: number): readonly Change[] | undefined {
    return this.#log.after(revision, limit)
  }

  /** Calls `listener` after each commit, synchronously; it must not write. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** Compacts history up to a revision. */
  compactTo(revision: number): void {
    this.#log.compactTo(revision)
  }

  /** Sets an object without history, when a saved state is loaded. */
  restore(key: string, object: StoredObject | undefined): void {
    if (object === undefined) {
      this.#objects.delete(key)
      this.#keys.delete(key)
      return
    }
    this.#objects.set(key, object)
    this.#keys.add(key)
  }

  /** Applies a change; only called by the store. */
  apply(change: Change): void {
    if (change.type === 'DELETED') {
      this.#objects.delete(change.key)
      this.#keys.delete(change.key)
    } else {
      this.#objects.set(change.key, change.object)
      if (change.previous === undefined) this.#keys.add(change.key)
    }
    this.#log.append(change)
    for (const listener of this.#listeners) listener(change)
  }

  #scanLatest(start: string, prefix: string, visit: (object: StoredObject, key: string) => boolean): void {
    this.#keys.visitFrom(start, (key) => {
      if (!key.startsWith(prefix)) return false
      return visit(this.#objects.get(key) as StoredObject, key)
    })
  }

  /** The latest state with newer changes undone: a merge of two sorted sequences. */
  #scanPast(
    past: ReadonlyMap<string, StoredObject | undefined>,
    start: string,
    prefix: string,
    visit: (object: StoredObject, key: string) => boolean,
  ): void {
    const restored = [...past.keys()].filter((key) => key >= start && key.startsWith(prefix)).sort()
    let next = 0
    let stopped = false
    const emitPastBefore = (bound: string | undefined): boolean => {
      for (; next < restored.length; next++) {
        const key = restored[next] as string
        if (bound !== undefined && key >= bound) return true
        const object = past.get(key)
        if (object !== undefined && !visit(object, key)) return false
      }
      return true
    }
    this.#keys.visitFrom(start, (key) => {
      if (!key.startsWith(prefix)) return false
      const more =
        emitPastBefore(key) && (past.has(key) || visit(this.#objects.get(key) as StoredObject, key))
      stopped = !more
      return more
    })
    if (!stopped) emitPastBefore(undefined)
  }

  /** The state at `revision` of every key that changed after it. */
  #statesAt(revision: number): Map<string, StoredObject | undefined> | undefined {
    const changes = this.#log.after(revision)
    if (changes === undefined) return undefined
    const states = new Map<string, StoredObject | undefined>()
    for (const change of changes) if (!states.has(change.key)) states.set(change.key, change.previous)
    return states
  }
}
