/** Serves the page with the sources of a command. */
import { type ConsoleServer, type OpenedPages, serveConsole } from '@tenon/console'
import type { Clock, Random } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { ActionFlags } from './action-command.ts'
import { clusterActions } from './actions.ts'
import { type ConsoleSource, manifestFacts } from './facts.ts'
import { followedView } from './follow.ts'
import { ThreadedAnswers } from './threaded-answers.ts'

/** What is shown of a cluster, and what may be done to it. */
export interface ShownCluster {
  readonly source: ConsoleSource
  /** How to carry out actions; absent: the page is read-only. */
  readonly acting?: Pick<ActionFlags, 'drainTimeout'>
  readonly clock: Clock
}

export interface ServedConsole extends ShownCluster {
  /** 0 takes any free port. */
  readonly port: number
  readonly random: Random
  /** Called with a new link when one was used. */
  readonly onLink?: (link: string) => void
}

/** @throws CliError naming the port that cannot be used. */
export async function servePage(io: Io, served: ServedConsole): Promise<ConsoleServer> {
  const { clock, onLink, port, random } = served
  const pages = openedPages(io, served)
  const server = await listening(async () =>
    serveConsole({ ...pages, port, clock, random, ...(onLink !== undefined && { onLink }) }),
  )
  return {
    get link() {
      return server.link
    },
    close: async () => {
      await Promise.all([server.close(), pages.close()])
    },
  }
}

/** @param withdrawn called if something that was shown may no longer be read. */
export function openedPages(
  io: Io,
  { acting, clock, source }: ShownCluster,
  withdrawn?: () => void,
): OpenedPages {
  const { cwd, env } = io
  const copies = new ThreadedAnswers({ cwd, env: { ...env }, source }, clock)
  return {
    copies,
    facts: manifestFacts(io),
    follow: async (signal) =>
      await followedView(io, source, { clock, signal, ...(withdrawn && { withdrawn }) }),
    ...(acting !== undefined && { actions: clusterActions(io, { ...source, ...acting }) }),
    close: async () => await copies.close(),
  }
}

/** @throws CliError if `listen` fails. */
export async function listening<T>(listen: () => Promise<T>): Promise<T> {
  try {
    return await listen()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`console: ${why}; choose another port with --port, or 0 for a free one`, { cause })
  }
}
