/**
 * The server of `tenon console --serve` (page.md 2): for several users, each request with the token of its user
 * and answered with the rights of that token. docs/design/0015-console-for-teams.md says why it is so.
 */
import { createHash } from 'node:crypto'
import { ownValue } from '@tenon/api'
import { type Clock, type HttpHandler, type HttpResponse, type Random, serveHttp } from '@tenon/runtime'
import { loopbackAddress, type PageAddress, type RequestHead, siteProblem } from './access.ts'
import { problem, refusal } from './answer.ts'
import { ConsolePages, type ConsolePagesOptions } from './console-pages.ts'
import { type PageFiles, pageFiles } from './page-files.ts'

/** Whom the API server takes the owner of a token for. */
export type TokenReview =
  /** Two tokens of equal `identity` have equal rights, as rights depend on nothing else. */
  | { readonly kind: 'user'; readonly name: string; readonly identity: string }
  | { readonly kind: 'refused'; readonly status: 401 | 403; readonly message: string }

/** What a user sees, until `close`. */
export interface OpenedPages extends Omit<ConsolePagesOptions, 'clock' | 'random' | 'user'> {
  close(): Promise<void>
}

export interface TeamConsoleOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Where browsers find the page; it is also found on the loopback address. */
  readonly publicUrl?: URL
  /** Lower case. */
  readonly tokenHeader: string
  readonly clock: Clock
  readonly random: Random
  /** @throws Error if the API server does not answer. */
  readonly review: (token: string, signal: AbortSignal) => Promise<TokenReview>
  /** @param withdrawn called if the user lost a right that the view has used. */
  readonly open: (token: string, withdrawn: () => void) => OpenedPages
}

export interface TeamConsoleServer {
  readonly url: string
  close(): Promise<void>
}

/** @throws Error naming the port if it is in use. */
export async function serveTeamConsole(options: TeamConsoleOptions): Promise<TeamConsoleServer> {
  const { host, port, publicUrl, tokenHeader } = options
  const address = pageAddress(publicUrl)
  const sessions = new Sessions(options, await pageFiles())
  const handler: HttpHandler = async (request, signal = sessions.signal) => {
    const { headers } = request
    const token = tokenIn(headers, tokenHeader)
    if (token === undefined) return unauthenticated(tokenHeader, headers['accept'])
    try {
      const found = await sessions.of(token, signal)
      if (found.kind === 'refused') return refusal(found, headers['accept'])
      return await found.pages.answer(request, AbortSignal.any([signal, found.ended.signal]))
    } catch (error) {
      signal.throwIfAborted()
      return problem(502, error instanceof Error ? error.message : String(error))
    }
  }
  const server = await serveHttp(handler, {
    host,
    port,
    joinDuplicateHeaders: true,
    refuses: (head) => refusalByHead(head, address, tokenHeader),
  })
  return {
    url: server.url,
    close: async () => {
      await Promise.all([sessions.close(), server.close()])
    },
  }
}

function pageAddress(publicUrl: URL | undefined): PageAddress {
  if (publicUrl === undefined) return loopbackAddress
  const defaultPort = publicUrl.protocol === 'https:' ? /:443$/ : /:80$/
  return {
    text: `${publicUrl.host}, as in ${publicUrl.origin}`,
    originOf: (host) =>
      host.toLowerCase().replace(defaultPort, '') === publicUrl.host
        ? publicUrl.origin
        : loopbackAddress.originOf(host),
  }
}

/** Before the body is read. */
function refusalByHead(
  { headers, method }: RequestHead,
  address: PageAddress,
  tokenHeader: string,
): HttpResponse | undefined {
  const accept = headers['accept']
  const foreign = siteProblem(headers, method, address)
  if (foreign !== undefined) return refusal({ status: 403, message: foreign }, accept)
  // It would have no effect; whoever sends it expects one.
  const impersonation = Object.keys(headers).find((name) => name.startsWith('impersonate-'))
  if (impersonation !== undefined)
    return refusal(
      { status: 400, message: `${impersonation} is not accepted: nobody acts as another user` },
      accept,
    )
  return tokenIn(headers, tokenHeader) === undefined ? unauthenticated(tokenHeader, accept) : undefined
}

function unauthenticated(tokenHeader: string, accept: string | undefined): HttpResponse {
  const message = `sign in: each request needs a token that the API server of the cluster accepts, in the header ${tokenHeader}`
  const refused = refusal({ status: 401, message }, accept)
  return { ...refused, headers: { ...refused.headers, 'www-authenticate': 'Bearer' } }
}

/** Longer ones fit into no request to an API server. */
const mostTokenCharacters = 16_384

/** A header that was sent twice contains a comma, which no token does. */
function tokenIn(headers: RequestHead['headers'], header: string): string | undefined {
  const [, scheme, token] = /^(Bearer +)?([\w.~+/-]+=*)$/i.exec(ownValue(headers, header) ?? '') ?? []
  if (token === undefined || token.length > mostTokenCharacters) return undefined
  return header === 'authorization' && scheme === undefined ? undefined : token
}

/** The API server is asked again whose a token is after this time. */
const reviewMs = 30_000
/** A view that nobody looks at is closed after this time. */
const idleMs = 60_000
/** Each has its own copy of the cluster. */
const mostSessions = 32
/** Tokens of one user, as of several browsers; the longest unused one gives way to another. */
const mostOfUser = 4

/** The view of the owner of a token. Nothing of it is shared with another token. */
interface Session {
  readonly kind: 'session'
  readonly token: string
  readonly name: string
  readonly identity: string
  readonly pages: ConsolePages
  readonly ended: AbortController
  readonly opened: OpenedPages
  reviewedMs: number
  usedMs: number
  /** Requests that are being answered, with streams. */
  busy: number
}

type Refused =
  | Extract<TokenReview, { kind: 'refused' }>
  | { readonly kind: 'refused'; readonly status: 503; readonly message: string }

class Sessions {
  readonly #options: TeamConsoleOptions
  readonly #files: PageFiles
  readonly #closed = new AbortController()
  /** By the digest of their token. */
  readonly #byToken = new Map<string, Session>()
  readonly #reviews = new Map<string, Promise<TokenReview>>()

  constructor(options: TeamConsoleOptions, files: PageFiles) {
    this.#options = options
    this.#files = files
    void this.#look()
  }

  get signal(): AbortSignal {
    return this.#closed.signal
  }

  /**
   * The session of a token, which counts as used until `signal` aborts.
   * @throws Error if the API server does not answer.
   */
  async of(token: string, signal: AbortSignal): Promise<Session | Refused> {
    const key = digestOf(token)
    const known = this.#byToken.get(key)
    const nowMs = this.#options.clock.monotonic()
    const found =
      known !== undefined && nowMs - known.reviewedMs < reviewMs ? known : await this.#reviewed(key, token)
    if (found.kind === 'refused') return found
    found.busy++
    const free = () => {
      found.busy--
      found.usedMs = this.#options.clock.monotonic()
    }
    if (signal.aborted) free()
    else signal.addEventListener('abort', free, { once: true })
    return found
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error('the console ends'))
    await Promise.all([...this.#byToken.keys()].map((key) => this.#end(key)))
  }

  /** Asks the API server whose the token is now; a session of another answer ends. */
  async #reviewed(key: string, token: string): Promise<Session | Refused> {
    let asked = this.#reviews.get(key)
    if (asked === undefined) {
      asked = this.#options.review(token, this.#closed.signal)
      this.#reviews.set(key, asked)
      asked.finally(() => this.#reviews.delete(key)).catch(() => undefined)
    }
    const review = await asked
    this.#closed.signal.throwIfAborted()
    const known = this.#byToken.get(key)
    if (known !== undefined && review.kind === 'user' && review.identity === known.identity) {
      known.reviewedMs = this.#options.clock.monotonic()
      return known
    }
    if (known !== undefined) void this.#end(key)
    return review.kind === 'user' ? this.#opened(key, token, review) : review
  }

  #opened(
    key: string,
    token: string,
    { identity, name }: Extract<TokenReview, { kind: 'user' }>,
  ): Session | Refused {
    if (!this.#hasRoomFor(identity))
      return {
        kind: 'refused',
        status: 503,
        message: `${mostSessions} views are open, more than this console keeps: try again in a minute`,
      }
    const { clock, open, random } = this.#options
    const ended = new AbortController()
    const opened = open(token, () => void this.#end(key))
    const nowMs = clock.monotonic()
    const session: Session = {
      kind: 'session',
      token,
      name,
      identity,
      pages: new ConsolePages({ ...opened, clock, random, user: name }, this.#files, ended.signal),
      ended,
      opened,
      reviewedMs: nowMs,
      usedMs: nowMs,
      busy: 0,
    }
    this.#byToken.set(key, session)
    return session
  }

  /** Ends the longest unused session of the user, or one that nobody looks at, if there are too many. */
  #hasRoomFor(identity: string): boolean {
    const oldestFirst = [...this.#byToken].toSorted(([, a], [, b]) => a.usedMs - b.usedMs)
    const own = oldestFirst.filter(([, session]) => session.identity === identity)
    const [leaving] =
      own.length >= mostOfUser
        ? own
        : oldestFirst.length >= mostSessions
          ? oldestFirst.filter(([, { busy }]) => busy === 0)
          : []
    if (leaving !== undefined) void this.#end(leaving[0])
    return this.#byToken.size < mostSessions
  }

  async #end(key: string): Promise<void> {
    const session = this.#byToken.get(key)
    if (session === undefined) return
    this.#byToken.delete(key)
    session.ended.abort(new Error('the view of this token has ended'))
    // Nobody can do anything about a thread that does not end.
    await session.opened.close().catch(() => undefined)
  }

  /** Streams make no requests, so their tokens are looked at here. */
  async #look(): Promise<void> {
    const { clock } = this.#options
    while (!this.#closed.signal.aborted) {
      await clock.sleep(reviewMs, this.#closed.signal).catch(() => undefined)
      for (const [key, { busy, reviewedMs, token, usedMs }] of this.#byToken) {
        const nowMs = clock.monotonic()
        if (busy === 0 && nowMs - usedMs >= idleMs) void this.#end(key)
        // A server that does not answer sends no news to the stream either.
        else if (nowMs - reviewedMs >= reviewMs) await this.#reviewed(key, token).catch(() => undefined)
      }
    }
  }
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64')
}
