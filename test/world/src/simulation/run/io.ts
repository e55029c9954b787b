import type { Clock } from '@tenon/runtime'

/** Prints a line. */
export type Say = (line: string) => void

/** What a command of the world needs. */
export interface Io {
  readonly args: readonly string[]
  readonly say: Say
  /** Real time. */
  readonly clock: Pick<Clock, 'monotonic'>
}
