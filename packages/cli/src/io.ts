/** The process interface of commands; injected, so that tests can replace the terminal. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Data. */
  readonly out: (text: string) => void
  /** Warnings, progress and errors. */
  readonly err: (text: string) => void
  readonly isTerminal: boolean
  /** All that comes on standard input. */
  readonly input: () => Promise<string>
  /** Reads a line that somebody types; absent where nobody can be asked. */
  readonly answer?: () => Promise<string>
  /** Size of the terminal in characters. */
  readonly size: () => { readonly columns: number; readonly rows: number }
  /** Aborts when the user asks the process to end (Ctrl-C or SIGTERM). */
  readonly interrupted: AbortSignal
}
