/** Requests over sockets, with the credentials of a kubeconfig. */
import { setOwn } from '@tenon/api'
import type http from 'node:http'
import type https from 'node:https'
import { createRequire } from 'node:module'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { type Clock, type HttpRequest, type HttpResponse, readText, type Transport } from '@tenon/runtime'
import type { ClusterAccess } from './cluster-access.ts'
import { IncomingBody } from './incoming-body.ts'
import type { UpgradeAddress } from './upgrade-address.ts'

export interface HttpTransportOptions {
  readonly server: URL
  /** Creates an access without cached tokens. Called again when the server rejects the credentials. */
  readonly newAccess: () => ClusterAccess
  readonly clock: Clock
}

/** Credentials are read again after this long, so that rotated files and tokens are used. */
const credentialsTtlMs = 1000
/** A plugin that takes longer is considered hung, and is started once more. */
const credentialsPatienceMs = 30_000
/** Minimum time between renewals of rejected credentials, so that a plugin is not started per request. */
const renewalPauseMs = 5_000
/** About twenty watches hold a socket each; the rest is for reads and writes. */
const socketLimit = 128

/** Not imported, as that would also load Node's large fetch client. */
const require = createRequire(import.meta.url)
const httpModule = require('node:http') as typeof http
const httpsModule = require('node:https') as typeof https

interface Credentials {
  readonly agent: http.Agent
  readonly headers: Readonly<Record<string, string>>
}

interface TlsOptions {
  readonly ca?: unknown
  readonly cert?: unknown
  readonly key?: unknown
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** One reading of the credentials, shared by all requests of that time. */
interface CredentialsReading {
  readonly startedAt: number
  readonly credentials: Promise<Credentials>
  endedAt?: number
}

export class HttpTransport implements Transport {
  readonly #options: HttpTransportOptions
  #access: ClusterAccess
  #reading: CredentialsReading | undefined
  #renewedAt = Number.NEGATIVE_INFINITY
  #agent: { readonly id: string; readonly agent: http.Agent } | undefined

  constructor(options: HttpTransportOptions) {
    this.#options = options
    this.#access = options.newAccess()
  }

  async send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    const reading = this.#currentReading()
    const credentials = await reading.credentials
    const response = await this.#exchangeSafely(request, credentials, signal)
    if (response.status !== 401) return response
    // The credentials were rotated early or revoked. A 401 did nothing, so that even a write may be retried.
    const renewed = await this.#renewedAfter(reading).catch(() => credentials)
    if (isSame(renewed, credentials)) return response
    await readText(response.body)
    return this.#exchangeSafely(request, renewed, signal)
  }

  /** What an upgrade to another protocol needs; `path` begins with a slash. */
  async upgradeTo(path: string): Promise<UpgradeAddress> {
    const { server } = this.#options
    const { agent, headers } = await this.#currentReading().credentials
    const url = new URL(`${server.origin}${server.pathname.replace(/\/$/, '')}${path}`)
    url.protocol = server.protocol === 'http:' ? 'ws:' : 'wss:'
    return { url, agent, headers }
  }

  /** Closes idle connections; others close when their request ends. */
  close(): void {
    this.#agent?.agent.destroy()
    this.#agent = undefined
    this.#reading = undefined
  }

  #currentReading(): CredentialsReading {
    const now = this.#options.clock.monotonic()
    const current = this.#reading
    if (current !== undefined && isFresh(current, now)) return current
    const reading: CredentialsReading = { startedAt: now, credentials: this.#readCredentials() }
    const end = () => {
      reading.endedAt = this.#options.clock.monotonic()
    }
    // A failure is cached as long as a success, so that a broken plugin is not started per request.
    reading.credentials.then(end, end)
    this.#reading = reading
    return reading
  }

  /** Credentials that are newer than `refused`; the first rejected request reads them for all. */
  #renewedAfter(refused: CredentialsReading): Promise<Credentials> {
    const now = this.#options.clock.monotonic()
    if (this.#reading === refused && now - this.#renewedAt >= renewalPauseMs) {
      this.#renewedAt = now
      this.#reading = undefined
      this.#access = this.#options.newAccess()
    }
    return this.#currentReading().credentials
  }

  async #readCredentials(): Promise<Credentials> {
    const options: https.RequestOptions = {}
    await this.#access.applyToHTTPSOptions(options)
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      // Token files usually end with a newline, which headers may not contain.
      if (value !== undefined) setOwn(headers, name.toLowerCase(), String(value).trim())
    }
    if (typeof options.auth === 'string')
      headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
    return { agent: this.#agentFor(options), headers }
  }

  /** The same agent while the certificates stay the same. */
  #agentFor(options: https.RequestOptions): http.Agent {
    const { server } = this.#options
    // The client library's agent connects through the proxy.
    if (this.#access.isProxied) return options.agent as http.Agent
    const tls: TlsOptions = {
      ...(options.ca !== undefined && { ca: options.ca }),
      ...(options.cert !== undefined && { cert: options.cert }),
      ...(options.key !== undefined && { key: options.key }),
      ...(options.servername !== undefined && { servername: options.servername }),
      ...(options.rejectUnauthorized !== undefined && { rejectUnauthorized: options.rejectUnauthorized }),
    }
    const id = JSON.stringify(tls, (_name, value: unknown) =>
      Buffer.isBuffer(value) ? value.toString('latin1') : value,
    )
    if (this.#agent?.id === id) return this.#agent.agent
    const keeping = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets: socketLimit, timeout: 60_000 }
    const agent =
      server.protocol === 'http:'
        ? new httpModule.Agent(keeping)
        : new httpsModule.Agent({ ...keeping, ...shared(tls) })
    this.#agent = { id, agent }
    return agent
  }

  async #exchangeSafely(
    request: HttpRequest,
    credentials: Credentials,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    try {
      return await this.#exchange(request, credentials, signal)
    } catch (error) {
      // The server may close an idle connection just when it is reused; a read can be retried.
      if (!isLostReuse(error) || request.method !== 'GET' || signal?.aborted === true) throw error
      return this.#exchange(request, credentials, signal)
    }
  }

  #exchange(
    request: HttpRequest,
    { agent, headers }: Credentials,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    const { server, clock } = this.#options
    const { request: open } = server.protocol === 'http:' ? httpModule : httpsModule
    return new Promise((resolve, reject) => {
      const outgoing = open(
        {
          agent,
          protocol: server.protocol,
          hostname: server.hostname.replace(/^\[|\]$/g, ''),
          port: server.port === '' ? undefined : server.port,
          method: request.method,
          path: `${server.pathname.replace(/\/$/, '')}${request.path}`,
          headers: {
            ...headers,
            ...request.headers,
            ...(request.body !== undefined && { 'content-length': Buffer.byteLength(request.body) }),
          },
        },
        (incoming) => {
          resolve({
            status: incoming.statusCode ?? 0,
            headers: plainHeaders(incoming.headers),
            body: new IncomingBody(incoming, { clock, gatherMs: request.gatherMs ?? 0 }),
          })
        },
      )
      if (signal !== undefined) endWith(outgoing, signal)
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        reject(outgoing.reusedSocket && error.code === 'ECONNRESET' ? new LostReuseError(error) : error)
      })
      outgoing.end(request.body)
    })
  }
}

/**
 * The same options object for every connection: reading and comparing certificates for each would take longer than the
 * rest of it.
 */
function shared({ ca, cert, key, ...rest }: TlsOptions): https.AgentOptions {
  return { ...rest, secureContext: createSecureContext({ ca, cert, key } as SecureContextOptions) }
}

function isFresh({ startedAt, endedAt }: CredentialsReading, now: number): boolean {
  return endedAt === undefined ? now - startedAt < credentialsPatienceMs : now - endedAt <= credentialsTtlMs
}

function isSame(a: Credentials, b: Credentials): boolean {
  return a.agent === b.agent && a.headers['authorization'] === b.headers['authorization']
}

/** Destroys the request and its response when the signal aborts. */
function endWith(outgoing: http.ClientRequest, signal: AbortSignal): void {
  const onAbort = () => {
    outgoing.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
  }
  if (signal.aborted) {
    onAbort()
    return
  }
  signal.addEventListener('abort', onAbort, { once: true })
  outgoing.once('close', () => {
    signal.removeEventListener('abort', onAbort)
  })
}

/** A reused connection was closed before the response began. */
class LostReuseError extends Error {
  constructor(cause: Error) {
    super('the connection was closed by the server', { cause })
    this.name = 'LostReuseError'
  }
}

function isLostReuse(error: unknown): boolean {
  return error instanceof LostReuseError
}

export function plainHeaders(headers: http.IncomingHttpHeaders): Record<string, string> {
  const plain: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) setOwn(plain, name, Array.isArray(value) ? value.join(', ') : value)
  return plain
}
