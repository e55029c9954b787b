import type { Terminal } from '@tenon/console'

/** How another run of this program ended. */
export interface ProgramEnd {
  readonly code: number
  readonly out: string
  readonly err: string
}

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
  /** The whole of the terminal, read key by key; absent where there is none. */
  readonly terminal?: Terminal
  /** Runs this program with other arguments, in a process of its own. */
  readonly runSelf?: (args: readonly string[], signal: AbortSignal) => Promise<ProgramEnd>
  /** Size of the terminal in characters. */
  readonly size: () => { readonly columns: number; readonly rows: number }
  /** Aborts when the user asks the process to end (Ctrl-C or SIGTERM). */
  readonly interrupted: AbortSignal
}
