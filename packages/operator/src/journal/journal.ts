/** The leader's journal: what it did lately, in memory. */
import { type Clock, rfc3339Micro } from '@tenon/runtime'
import { entryFrom, lineOf } from './entry-line.ts'
import { entryOf, type JournalEntry, type JournalNote } from './entry.ts'

interface Dependencies {
  readonly clock: Pick<Clock, 'now'>
  /** Of the provider's prices; undefined where it does not say. */
  readonly currency: () => string | undefined
}

/** An entry that was noted, and the line that it is kept as. */
export interface Noted {
  readonly entry: JournalEntry
  readonly line: string
}

const mebibyte = 1024 * 1024
const mostBytes = 16 * mebibyte
/** What failures and refusals may take of it: many of them do not displace the moves of the day. */
const mostTroubleBytes = 4 * mebibyte
/** What failed or was refused for the same reason is not noted again within this time. */
const repeatedMs = 10 * 60_000
const mostRepeated = 10_000

/** Keeps the newest entries. */
export class Journal {
  readonly #deps: Dependencies
  readonly #deeds = new LineRing(mostBytes - mostTroubleBytes)
  readonly #troubles = new LineRing(mostTroubleBytes)
  /** When a failure or a refusal was noted last, by what it says; in milliseconds. */
  readonly #repeated = new Map<string, number>()
  readonly #followers = new Set<(noted: Noted) => void>()
  #count = 0
  #order = 0

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Notes what has just happened. A failure or a refusal that was noted a moment ago is not noted again. */
  note(note: JournalNote): void {
    this.#noteAs(undefined, note)
  }

  /** Notes a decision. @returns its id, for what is done about it. */
  decided(note: Omit<JournalNote, 'decision'>): string {
    const id = this.#newId(this.#deps.clock.now())
    this.#noteAs(id, { ...note, decision: id })
    return id
  }

  #newId(nowMs: number): string {
    return `${Math.floor(nowMs).toString(36)}-${(this.#count++).toString(36)}`
  }

  #noteAs(givenId: string | undefined, note: JournalNote): void {
    const nowMs = this.#deps.clock.now()
    if (isTrouble(note) && this.#isRepeated(note, nowMs)) return
    const currency = this.#deps.currency()
    const entry = entryOf(note, {
      id: givenId ?? this.#newId(nowMs),
      at: rfc3339Micro(nowMs),
      ...(currency !== undefined && { currency }),
    })
    const line = lineOf(entry)
    this.#ringOf(entry).add({ atMs: nowMs, order: this.#order++, line })
    for (const follower of this.#followers) follower({ entry, line })
  }

  /**
   * Calls `follower` for each entry as it is noted.
   * @returns what ends that.
   */
  follow(follower: (noted: Noted) => void): () => void {
    // One who subscribes twice is called twice.
    const own = (noted: Noted) => {
      follower(noted)
    }
    this.#followers.add(own)
    return () => {
      this.#followers.delete(own)
    }
  }

  /** Takes an entry up that an earlier process has noted; they come before all that this one notes. */
  restore(entry: JournalEntry, line: string): void {
    this.#ringOf(entry).add({ atMs: Date.parse(entry.at), order: this.#order++, line })
  }

  /** Lines of the entries from this time on, oldest first; in steps, as there may be many. */
  *lines(sinceMs = Number.NEGATIVE_INFINITY): Generator<string, void, undefined> {
    const troubles = this.#troubles.since(sinceMs)
    let trouble = nextOf(troubles)
    for (const deed of this.#deeds.since(sinceMs)) {
      for (; trouble !== undefined && trouble.order < deed.order; trouble = nextOf(troubles))
        yield trouble.line
      yield deed.line
    }
    for (; trouble !== undefined; trouble = nextOf(troubles)) yield trouble.line
  }

  /** As {@link lines}, read. */
  *entries(sinceMs?: number): Generator<JournalEntry, void, undefined> {
    for (const line of this.lines(sinceMs)) {
      const read = entryFrom(line)
      if ('entry' in read) yield read.entry
    }
  }

  /** Memory that the entries take, at most. */
  get bytes(): number {
    return this.#deeds.bytes + this.#troubles.bytes
  }

  #ringOf(note: JournalNote): LineRing {
    return isTrouble(note) ? this.#troubles : this.#deeds
  }

  #isRepeated(
    { kind, reason, message, nodePool = '', nodes = [], nodeClaims = [] }: JournalNote,
    nowMs: number,
  ) {
    // Each NodeClaim that fails has a name of its own; what is told of it does not.
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

function isTrouble({ kind }: Pick<JournalNote, 'kind'>): boolean {
  return kind === 'failure' || kind === 'refusal'
}

interface KeptLine {
  /** Unix milliseconds. */
  readonly atMs: number
  /** Grows with every line of all rings of a journal. */
  readonly order: number
  readonly line: string
}

/** What a line takes beside its text. */
const overheadBytes = 96

class LineRing {
  readonly #mostBytes: number
  #lines: (KeptLine | undefined)[] = []
  /** Lines before this one are gone, and their places empty. */
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
    // Seldom, so that a line costs little.
    if (this.#first > 1000 && this.#first > this.#lines.length / 2) {
      this.#lines = this.#lines.slice(this.#first)
      this.#first = 0
    }
  }

  /** Oldest first. What is added or goes meanwhile does not disturb it. */
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

/** A text takes a byte for each character if all of them are Latin-1, and else two. */
function bytesOf({ line }: KeptLine): number {
  return (beyondLatin1.test(line) ? 2 : 1) * line.length + overheadBytes
}

const beyondLatin1 = /[^\0-\u00ff]/
