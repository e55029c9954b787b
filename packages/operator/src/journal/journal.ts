import { type Clock, rfc3339Micro } from '@tenon/runtime'
import { entryFrom, entryOf, type JournalEntry, type JournalNote, lineOf } from './entry.ts'

export interface Noted {
  readonly entry: JournalEntry
  readonly line: string
}

const mebibyte = 1024 * 1024
const mostBytes = 16 * mebibyte
/** Share of failures and refusals: many of them must not displace other entries. */
const mostTroubleBytes = 3 * mebibyte
/** Share of what was spent: a week of a hundred workloads, noted every hour. */
const mostSpendBytes = 2 * mebibyte
/** The same failure or refusal is not added again within this time. */
const repeatedMs = 10 * 60_000
const mostRepeated = 10_000

/** What the leader did, in memory: the newest entries. */
export class Journal {
  readonly #clock: Pick<Clock, 'now'>
  readonly #currency: () => string | undefined
  readonly #deeds = new LineRing(mostBytes - mostTroubleBytes - mostSpendBytes)
  readonly #troubles = new LineRing(mostTroubleBytes)
  readonly #spend = new LineRing(mostSpendBytes)
  /** When a failure or refusal was added last, by its text; in milliseconds. */
  readonly #repeated = new Map<string, number>()
  readonly #followers = new Set<(noted: Noted) => void>()
  #count = 0
  #order = 0

  /** @param currency of the provider's prices; undefined if it names none. */
  constructor(clock: Pick<Clock, 'now'>, currency: () => string | undefined) {
    this.#clock = clock
    this.#currency = currency
  }

  /** Adds an entry, unless it is a failure or refusal that was added recently. @returns its id. */
  note(note: JournalNote): string {
    const id = this.#newId(this.#clock.now())
    this.#noteAs(id, note)
    return id
  }

  /** Adds a decision. @returns its id, for the entries that follow from it. */
  decided(note: Omit<JournalNote, 'decision'>): string {
    const id = this.#newId(this.#clock.now())
    this.#noteAs(id, { ...note, decision: id })
    return id
  }

  #newId(nowMs: number): string {
    return `${Math.floor(nowMs).toString(36)}-${(this.#count++).toString(36)}`
  }

  #noteAs(id: string, note: JournalNote): void {
    const nowMs = this.#clock.now()
    if (isTrouble(note) && this.#isRepeated(note, nowMs)) return
    const currency = this.#currency()
    const entry = entryOf(note, {
      id,
      at: rfc3339Micro(nowMs),
      ...(currency !== undefined && { currency }),
    })
    const line = lineOf(entry)
    this.#ringOf(entry).add({ atMs: nowMs, order: this.#order++, line })
    for (const follower of this.#followers) follower({ entry, line })
  }

  /** Calls `follower` for each new entry. @returns a function that ends this. */
  follow(follower: (noted: Noted) => void): () => void {
    // A function that follows twice is called twice.
    const own = (noted: Noted) => {
      follower(noted)
    }
    this.#followers.add(own)
    return () => {
      this.#followers.delete(own)
    }
  }

  /** Lines that outlive the process, and with them those of now; absent without `--journal-path`. */
  stored: ((signal: AbortSignal) => AsyncIterable<string>) | undefined

  /** Adds an entry of an earlier process, before those of this one. */
  restore(entry: JournalEntry, line: string): void {
    this.#ringOf(entry).add({ atMs: Date.parse(entry.at), order: this.#order++, line })
  }

  /** Lines of the entries since a time, oldest first. */
  *lines(sinceMs = Number.NEGATIVE_INFINITY): Generator<string, void, undefined> {
    const rings = [this.#deeds, this.#troubles, this.#spend].map((ring) => {
      const rest = ring.since(sinceMs)
      return { rest, next: nextOf(rest) }
    })
    for (;;) {
      let first = rings[0]
      for (const ring of rings)
        if (ring.next !== undefined && !(ring.next.order > (first?.next?.order ?? Number.POSITIVE_INFINITY)))
          first = ring
      if (first?.next === undefined) return
      const { line } = first.next
      first.next = nextOf(first.rest)
      yield line
    }
  }

  *entries(sinceMs?: number): Generator<JournalEntry, void, undefined> {
    for (const line of this.lines(sinceMs)) {
      const read = entryFrom(line)
      if ('entry' in read) yield read.entry
    }
  }

  /** Maximum memory that the entries take. */
  get bytes(): number {
    return this.#deeds.bytes + this.#troubles.bytes + this.#spend.bytes
  }

  #ringOf(note: JournalNote): LineRing {
    if (note.kind === 'spend') return this.#spend
    return isTrouble(note) ? this.#troubles : this.#deeds
  }

  #isRepeated(
    { kind, reason, message, nodePool = '', nodes = [], nodeClaims = [] }: JournalNote,
    nowMs: number,
  ) {
    // NodeClaims of a pool that fail for the same reason are one failure.
    const objects = nodes.length > 0 ? nodes : nodePool === '' ? nodeClaims : []
    const key = JSON.stringify([kind, reason, nodePool, ...objects, message])
    const lastMs = this.#repeated.get(key)
    if (lastMs !== undefined && nowMs - lastMs < repeatedMs && nowMs >= lastMs) return true
    this.#repeated.delete(key)
    this.#repeated.set(key, nowMs)
    for (const [oldest] of this.#repeated) {
      if (this.#repeated.size <= mostRepeated) break
      this.#repeated.delete(oldest)
    }
    return false
  }
}

function nextOf(lines: Iterator<KeptLine, void>): KeptLine | undefined {
  const next = lines.next()
  return next.done === true ? undefined : next.value
}

/** An observed plan ends as often as one begins. */
function isTrouble({ kind, observed }: Pick<JournalNote, 'kind' | 'observed'>): boolean {
  return (kind === 'failure' || kind === 'refusal') && observed !== true
}

interface KeptLine {
  /** Unix milliseconds. */
  readonly atMs: number
  /** Position among the lines of all rings. */
  readonly order: number
  readonly line: string
}

/** Memory of a line beside its text. */
const overheadBytes = 96

class LineRing {
  readonly #mostBytes: number
  #lines: (KeptLine | undefined)[] = []
  /** Lines before this index were dropped. */
  #first = 0
  #bytes = 0

  constructor(limitBytes: number) {
    this.#mostBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  add(line: KeptLine): void {
    this.#lines.push(line)
    this.#bytes += bytesOf(line)
    while (this.#bytes > this.#mostBytes) this.#drop(this.#first++)
    // Rarely, so that a line costs little.
    if (this.#first > 1000 && this.#first > this.#lines.length / 2) {
      this.#lines = this.#lines.slice(this.#first)
      this.#first = 0
    }
  }

  /** Oldest first. Lines may be added or dropped meanwhile. */
  *since(sinceMs: number): Generator<KeptLine, void, undefined> {
    const lines = this.#lines.slice(this.#first)
    for (const line of lines) if (line !== undefined && line.atMs >= sinceMs) yield line
  }

  #drop(index: number): void {
    const line = this.#lines[index]
    if (line !== undefined) this.#bytes -= bytesOf(line)
    this.#lines[index] = undefined
  }
}

/** V8 stores a byte for each character if all are Latin-1, and otherwise two. */
function bytesOf({ line }: KeptLine): number {
  return (beyondLatin1.test(line) ? 2 : 1) * line.length + overheadBytes
}

const beyondLatin1 = /[^\0-\u00ff]/
