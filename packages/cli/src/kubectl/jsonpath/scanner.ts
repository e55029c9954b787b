/** Scans the characters of a JSONPath template. */
import { JsonPathError } from './template.ts'

const escapes: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['r', '\r'],
])

export class Scanner {
  readonly text: string
  at: number
  readonly #end: number

  constructor(text: string, at = 0, end: number = text.length) {
    this.text = text
    this.at = at
    this.#end = end
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end
  }

  /** The current character; empty at the end. */
  get here(): string {
    return this.isAtEnd ? '' : (this.text[this.at] ?? '')
  }

  /** Skips `expected` if it comes next. */
  skip(expected: string): boolean {
    const stands = this.text.startsWith(expected, this.at) && this.at + expected.length <= this.#end
    if (stands) this.at += expected.length
    return stands
  }

  skipSpace(): void {
    while (/\s/.test(this.here)) this.at++
  }

  /** Takes what `pattern`, which is sticky, matches here; empty if it does not match. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const [found = ''] = pattern.exec(this.text) ?? []
    const within = found.slice(0, this.#end - this.at)
    this.at += within.length
    return within
  }

  /** Takes a string in single or double quotes. */
  quoted(): string {
    const quote = this.here
    const start = this.at++
    let text = ''
    while (!this.isAtEnd && this.here !== quote) {
      if (this.skip('\\')) {
        text += escapes.get(this.here) ?? this.here
        this.at++
      } else text += this.text[this.at++]
    }
    if (!this.skip(quote)) this.fail(`the text that begins at ${start + 1} has no closing ${quote}`)
    return text
  }

  /** Position of the matching closing bracket; brackets in quotes are ignored. */
  closing(open: string, close: string): number {
    let depth = 1
    const look = new Scanner(this.text, this.at, this.#end)
    while (!look.isAtEnd) {
      if (look.here === '"' || look.here === "'") {
        look.quoted()
        continue
      }
      if (look.skip('\\')) {
        look.at++
        continue
      }
      if (look.here === open) depth++
      if (look.here === close && --depth === 0) return look.at
      look.at++
    }
    return this.fail(`${open} at ${this.at} is never closed by ${close}`)
  }

  /** A scanner of the text before `end`; this one continues after it. */
  until(end: number): Scanner {
    const inner = new Scanner(this.text, this.at, end)
    this.at = end + 1
    return inner
  }

  fail(reason: string): never {
    throw new JsonPathError(`cannot read the JSONPath ${this.text}: ${reason}`)
  }
}
