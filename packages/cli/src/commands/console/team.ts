/** The page for a team: the pages of each user, with the rights of the token that their requests bring (page.md 2). */
import { serveTeamConsole, type TeamConsoleServer, type TokenReview } from '@tenon/console'
import { isKubeError, reviewSelf } from '@tenon/kube'
import type { Random } from '@tenon/runtime'
import type { Io } from '../../io.ts'
import { onCluster } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { listening, openedPages, type ShownCluster } from './serve.ts'

export interface TeamConsole extends ShownCluster {
  /** IP address to listen on. */
  readonly address: string
  /** 0 takes any free port. */
  readonly port: number
  /** Where browsers find the page, if not on the loopback address. */
  readonly publicUrl?: URL
  readonly tokenHeader: string
  readonly random: Random
}

/** An API server that has not answered by then is not reachable. */
const reviewLimitMs = 10_000

/** @throws CliError naming the port that cannot be used. */
export async function serveTeamPage(io: Io, team: TeamConsole): Promise<TeamConsoleServer> {
  const { address, clock, port, publicUrl, random, source, tokenHeader } = team
  return await listening(async () =>
    serveTeamConsole({
      host: address,
      port,
      tokenHeader: tokenHeader.toLowerCase(),
      clock,
      random,
      ...(publicUrl !== undefined && { publicUrl }),
      review: async (token, signal) => await reviewOf(io, { ...source, token }, signal),
      open: (token, withdrawn) => openedPages(io, { ...team, source: { ...source, token } }, withdrawn),
    }),
  )
}

/**
 * Asks the API server who the owner of the token is, with that token.
 * @throws KubectlError if it does not answer.
 */
async function reviewOf(io: Io, flags: ClusterFlags, signal: AbortSignal): Promise<TokenReview> {
  return await onCluster(io, flags, async ({ clock, config }) => {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(reviewLimitMs)])
      const subject = await reviewSelf({ transport: config.transport, clock }, limit)
      if (subject === undefined) return unaccepted
      const { extra = {}, groups, uid, user } = subject
      const sorted = Object.entries(extra).toSorted(([a], [b]) => (a < b ? -1 : 1))
      return { kind: 'user', name: user, identity: JSON.stringify([user, uid, groups.toSorted(), sorted]) }
    } catch (error) {
      if (isKubeError(error, 'unauthorized')) return unaccepted
      if (!isKubeError(error, 'forbidden')) throw error
      return {
        kind: 'refused',
        status: 403,
        message: `the API server does not say who you are: ${error.serverMessage ?? error.message}`,
      }
    }
  })
}

const unaccepted: TokenReview = {
  kind: 'refused',
  status: 401,
  message: 'sign in again: the API server of the cluster does not accept the token',
}
