/** Serves the page on what a command asks. */
import { type ConsoleServer, serveConsole } from '@tenon/console'
import type { Clock, Random } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { consoleActions } from './actions.ts'
import { consoleFacts, type ConsoleSource } from './facts.ts'
import { followedView } from './follow.ts'

export interface ServedConsole {
  readonly source: ConsoleSource
  /** 0 takes any free port. */
  readonly port: number
  readonly mayAct: boolean
  readonly clock: Clock
  readonly random: Random
  /** Told with another link when one was used. */
  readonly onLink?: (link: string) => void
}

/** @throws CliError naming the port that cannot be used. */
export async function servePage(io: Io, served: ServedConsole): Promise<ConsoleServer> {
  const { clock, mayAct, onLink, port, random, source } = served
  try {
    return await serveConsole({
      port,
      clock,
      random,
      facts: consoleFacts(io, source),
      follow: async (signal) => await followedView(io, source, clock, signal),
      ...(mayAct && { actions: consoleActions(io, source) }),
      ...(onLink !== undefined && { onLink }),
    })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`console: ${why}; choose another port with --port, or 0 for a free one`, { cause })
  }
}
