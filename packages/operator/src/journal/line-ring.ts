/** Lines of text in the order in which they came, the oldest of which go once there is no room for them. */

export interface KeptLine {
  /** Unix milliseconds. */
  readonly atMs: number
  /** Grows with every line of all rings of a journal. */
  readonly order: number
  readonly line: string
}

/** What a line takes beside its text. */
const overheadBytes = 96

export class LineRing {
  readonly #mostBytes: number
  #lines: (KeptLine | undefined)[] = []
  /** Lines before this one are gone, and their places empty. */
  #first = 0
  #bytes = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
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
