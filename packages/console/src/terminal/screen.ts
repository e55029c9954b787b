/** The alternate screen of a terminal: redraws only changed lines, and is left however the process ends. */

export interface Terminal {
  write(text: string): void
  size(): { readonly columns: number; readonly rows: number }
  /**
   * Reads keys until the returned function is called. If the process ends or is stopped before, `leave` is
   * written, and `enter` again when it continues.
   */
  open(handlers: TerminalHandlers, texts: { readonly enter: string; readonly leave: string }): () => void
}

export interface TerminalHandlers {
  readonly keys: (text: string) => void
  readonly resized: () => void
  /** The process was stopped and continues. */
  readonly resumed: () => void
}

const enter = '\u001b[?1049h\u001b[?25l\u001b[2J'
const leave = '\u001b[0m\u001b[?25h\u001b[?1049l'

export class Screen {
  readonly #terminal: Terminal
  #lines: readonly string[] = []

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  open({ keys, resized, resumed }: TerminalHandlers): () => void {
    return this.#terminal.open(
      {
        keys,
        resized: () => {
          this.#clear()
          resized()
        },
        resumed: () => {
          this.#clear()
          resumed()
        },
      },
      { enter, leave },
    )
  }

  /** Writes the lines that have changed. */
  draw(lines: readonly string[]): void {
    let text = ''
    for (const [at, line] of lines.entries())
      if (line !== this.#lines[at]) text += `\u001b[${at + 1};1H${line}\u001b[0m\u001b[K`
    this.#lines = lines
    if (text !== '') this.#terminal.write(text)
  }

  /** Copies to the terminal's clipboard, if it allows that (OSC 52). */
  copy(text: string): void {
    this.#terminal.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
  }

  #clear(): void {
    this.#lines = []
    this.#terminal.write('\u001b[2J')
  }
}
