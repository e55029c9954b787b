import type { Io } from '../io.ts'

/** Prints nothing, reads nothing, and is interrupted by `interrupted`. */
export function quietIo(interrupted: AbortSignal = new AbortController().signal): Io {
  return {
    env: {},
    cwd: '/',
    out: () => undefined,
    err: () => undefined,
    input: () => Promise.resolve(''),
    isTerminal: false,
    size: () => ({ columns: 80, rows: 24 }),
    interrupted,
  }
}
