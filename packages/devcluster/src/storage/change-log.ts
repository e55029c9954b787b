import type { StoredObject } from '../contract.ts'

/** One committed write. */
export interface Change {
  readonly revision: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly key: string
  /** The object after the write; for a deletion, its last state with the deletion's revision. */
  readonly object: StoredObject
  /** The object before the write. */
  readonly previous: StoredObject | undefined
  /** Commit time in milliseconds. */
  readonly atMs: number
}

/** How much history is kept for watches and paged lists. */
export interface Retention {
  /** Changes kept per collection. */
  readonly maxChanges: number
  /** Maximum age of changes in milliseconds. */
  readonly maxAgeMs: number
}

/** The history of one collection: the newest changes, in revision order. */
export class ChangeLog {
  readonly #retention: Retention
  #changes: Change[] = []
  /** Index of the oldest kept change; everything before it will be cut off. */
  #head = 0
  #compactedRevision: number

  constructor(retention: Retention, compactedRevision: number) {
    this.#retention = retention
    this.#compactedRevision = compactedRevision
  }

  /** The newest compacted revision; history begins right after it. */
  get compactedRevision(): number {
    return this.#compactedRevision
  }

  /** Revision of the newest change, or of the compaction if there is none. */
  get lastRevision(): number {
    return this.#changes.at(-1)?.revision ?? this.#compactedRevision
  }

  append(change: Change): void {
    this.#changes.push(change)
    this.#compact(change.atMs)
  }

  /** Up to `limit` changes after `revision`, oldest first; `undefined` if they are compacted. */
  after(revision: number, limit = Number.POSITIVE_INFINITY): readonly Change[] | undefined {
    if (revision < this.#compactedRevision) return undefined
    if (revision >= this.lastRevision) return []
    const start = this.#firstAfter(revision)
    return this.#changes.slice(start, Math.min(this.#changes.length, start + limit))
  }

  /** Forgets everything up to and including `revision`. */
  compactTo(revision: number): void {
    const end = this.#firstAfter(revision)
    this.#compactedRevision = Math.max(this.#compactedRevision, revision)
    this.#changes = this.#changes.slice(end)
    this.#head = 0
  }

  #compact(nowMs: number): void {
    const { maxChanges, maxAgeMs } = this.#retention
    for (;;) {
      const oldest = this.#changes[this.#head] as Change
      const count = this.#changes.length - this.#head
      if (count <= 1 || (count <= maxChanges && nowMs - oldest.atMs <= maxAgeMs)) break
      this.#compactedRevision = oldest.revision
      this.#head++
    }
    if (this.#head > 1024 && this.#head * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#head)
      this.#head = 0
    }
  }

  #firstAfter(revision: number): number {
    let low = this.#head
    let high = this.#changes.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#changes[middle] as Change).revision <= revision) low = middle + 1
      else high = middle
    }
    return low
  }
}
