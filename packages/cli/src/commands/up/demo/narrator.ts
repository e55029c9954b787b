/** Prints the steps of the demonstration to a terminal or a pipe. */
import { stripVTControlCharacters } from 'node:util'
import type { Io } from '../../../io.ts'

const reset = '\u001b[0m'
const clearLine = '\r\u001b[K'
const styles = { bold: '\u001b[1m', dim: '\u001b[2m', green: '\u001b[32m' } as const

/** On a terminal with colours and a status line; otherwise plain lines. */
export class Narrator {
  readonly #io: Io
  readonly #isColoured: boolean
  #isStatusShown = false

  constructor(io: Io) {
    this.#io = io
    this.#isColoured = io.isTerminal && (io.env['NO_COLOR'] ?? '') === ''
  }

  title(text: string): void {
    this.#line(`\n${this.#styled('bold', text)}`)
  }

  say(text: string): void {
    this.#line(`  ${text}`)
  }

  /** Something that has happened. */
  done(text: string): void {
    this.#line(`  ${this.#styled('green', '*')} ${text}`)
  }

  /** The reason for the previous line. */
  because(text: string): void {
    this.#line(`      ${this.#styled('dim', text)}`)
  }

  /** A text of several lines, such as a manifest. */
  quote(text: string): void {
    for (const line of text.trim().split('\n')) this.#line(`    ${this.#styled('dim', line)}`)
  }

  /** Shows what the demonstration waits for; terminal only. Replaces the previous status. */
  status(text: string): void {
    if (!this.#io.isTerminal) return
    const { columns } = this.#io.size()
    this.#io.out(`${clearLine}${this.#styled('dim', `  … ${text}`.slice(0, columns - 1))}`)
    this.#isStatusShown = true
  }

  /** Removes the status. */
  clear(): void {
    if (this.#isStatusShown) this.#io.out(clearLine)
    this.#isStatusShown = false
  }

  #line(text: string): void {
    this.clear()
    this.#io.out(`${this.#io.isTerminal ? text : stripVTControlCharacters(text)}\n`)
  }

  #styled(style: keyof typeof styles, text: string): string {
    return this.#isColoured ? `${styles[style]}${text}${reset}` : text
  }
}
