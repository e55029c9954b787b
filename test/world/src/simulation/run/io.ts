import type { Clock } from '@tenon/runtime'

/** Writes a line for whoever started the command. */
export type Say = (line: string) => void

/** What a command of the world is given. */
export interface Io {
  readonly args: readonly string[]
  readonly say: Say
  /** Real time. */
  readonly clock: Pick<Clock, 'monotonic'>
}
