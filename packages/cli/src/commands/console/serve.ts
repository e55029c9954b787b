/** Serves the page with the sources of a command. */
import { type ConsoleServer, serveConsole } from '@tenon/console'
import type { Clock, Random } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { ActionFlags } from './action-command.ts'
import { clusterActions } from './actions.ts'
import { type ConsoleSource, manifestFacts } from './facts.ts'
import { followedView } from './follow.ts'
import { ThreadedAnswers } from './threaded-answers.ts'

export interface ServedConsole {
  readonly source: ConsoleSource
  /** 0 takes any free port. */
  readonly port: number
  /** How to carry out actions; absent: the page is read-only. */
  readonly acting?: Pick<ActionFlags, 'drainTimeout'>
  readonly clock: Clock
  readonly random: Random
  /** Called with a new link when one was used. */
  readonly onLink?: (link: string) => void
}

/** @throws CliError naming the port that cannot be used. */
export async function servePage(io: Io, served: ServedConsole): Promise<ConsoleServer> {
  const { acting, clock, onLink, port, random, source } = served
  const { cwd, env } = io
  const copies = new ThreadedAnswers({ cwd, env: { ...env }, source }, clock)
  try {
    const server = await serveConsole({
      port,
      clock,
      random,
      copies,
      facts: manifestFacts(io),
      follow: async (signal) => await followedView(io, source, clock, signal),
      ...(acting !== undefined && { actions: clusterActions(io, { ...source, ...acting }) }),
      ...(onLink !== undefined && { onLink }),
    })
    return {
      get link() {
        return server.link
      },
      close: async () => {
        await Promise.all([server.close(), copies.close()])
      },
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`console: ${why}; choose another port with --port, or 0 for a free one`, { cause })
  }
}
