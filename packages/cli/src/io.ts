import type { Terminal } from '@tenon/console'

/** How a child process of this program ended. */
export interface ProgramEnd {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** The process interface of commands; injected, so that tests can replace it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Standard output: data. */
  readonly out: (text: string) => void
  /** Standard error: warnings, progress and errors. */
  readonly err: (text: string) => void
  readonly isTerminal: boolean
  /** Reads all of standard input. */
  readonly input: () => Promise<string>
  /** Reads a line from the user; absent if there is no terminal. */
  readonly answer?: () => Promise<string>
  /** Full access to the terminal, key by key; absent if there is none. */
  readonly terminal?: Terminal
  /** Runs this program with other arguments in a child process. */
  readonly runSelf?: (args: readonly string[], signal: AbortSignal) => Promise<ProgramEnd>
  /** Size of the terminal in characters. */
  readonly size: () => { readonly columns: number; readonly rows: number }
  /** Aborts on Ctrl-C or SIGTERM. */
  readonly interrupted: AbortSignal
}
