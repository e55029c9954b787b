/** The alternate screen of a terminal: entered, drawn on by changed lines, and left again whatever happens. */

/** A terminal that can be drawn on. */
export interface Terminal {
  write(text: string): void
  size(): { readonly columns: number; readonly rows: number }
  /**
   * Reads keys one by one until the answer is called. Whatever ends or stops the process before that, `leave` is written first,
   * and `enter` again when it goes on.
   */
  open(handlers: TerminalHandlers, texts: { readonly enter: string; readonly leave: string }): () => void
}

export interface TerminalHandlers {
  readonly keys: (text: string) => void
  readonly resized: () => void
  /** The process was stopped, and goes on. */
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

  /** Writes the lines that are other ones than before. */
  draw(lines: readonly string[]): void {
    let text = ''
    for (const [at, line] of lines.entries())
      if (line !== this.#lines[at]) text += `\u001b[${at + 1};1H${line}\u001b[0m\u001b[K`
    this.#lines = lines
    if (text !== '') this.#terminal.write(text)
  }

  /** Into the clipboard of the terminal, where it allows that (OSC 52). */
  copy(text: string): void {
    this.#terminal.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
  }

  #clear(): void {
    this.#lines = []
    this.#terminal.write('\u001b[2J')
  }
}
