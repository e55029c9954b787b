/** Requests over sockets, with the credentials of a kubeconfig. */
import http from 'node:http'
import https from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import type { Clock, HttpRequest, HttpResponse, Transport } from '@tenon/runtime'

export interface HttpTransportOptions {
  readonly server: URL
  readonly config: KubeConfig
  readonly clock: Clock
}

/** Credentials are read again after this long, so that rotated files and tokens come into use. */
const credentialsTtlMs = 1000
/** About ten watches hold one socket each; the rest is for reads and writes. */
const socketLimit = 64

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

export class HttpTransport implements Transport {
  readonly #options: HttpTransportOptions
  #credentials: Promise<Credentials> | undefined
  #credentialsReadAt = 0
  #agent: { readonly id: string; readonly agent: http.Agent } | undefined

  constructor(options: HttpTransportOptions) {
    this.#options = options
  }

  async send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    const credentials = await this.#currentCredentials()
    try {
      return await this.#exchange(request, credentials, signal)
    } catch (error) {
      // The server may close an idle connection at the moment it is used again; a read is safe to repeat.
      if (!isLostReuse(error) || request.method !== 'GET' || signal?.aborted === true) throw error
      return this.#exchange(request, credentials, signal)
    }
  }

  /** Closes the connections that are idle; others close when their request ends. */
  close(): void {
    this.#agent?.agent.destroy()
    this.#agent = undefined
    this.#credentials = undefined
  }

  #currentCredentials(): Promise<Credentials> {
    const now = this.#options.clock.monotonic()
    if (this.#credentials === undefined || now - this.#credentialsReadAt > credentialsTtlMs) {
      this.#credentialsReadAt = now
      this.#credentials = this.#readCredentials()
      // A failed plugin or file must not be remembered.
      this.#credentials.catch(() => {
        this.#credentials = undefined
      })
    }
    return this.#credentials
  }

  async #readCredentials(): Promise<Credentials> {
    const { config } = this.#options
    const options: https.RequestOptions = {}
    await config.applyToHTTPSOptions(options)
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      // Token files usually end with a line break, which no header may.
      if (value !== undefined) headers[name.toLowerCase()] = String(value).trim()
    }
    if (typeof options.auth === 'string')
      headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
    return { agent: this.#agentFor(options), headers }
  }

  /** One agent for as long as the certificates stay the same. */
  #agentFor(options: https.RequestOptions): http.Agent {
    const { config, server } = this.#options
    // Through a proxy the client library's own agent is used, which knows how to tunnel.
    if ((config.getCurrentCluster()?.proxyUrl ?? '') !== '') return options.agent as http.Agent
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
        ? new http.Agent(keeping)
        : new https.Agent({ ...keeping, ...(tls as https.AgentOptions) })
    this.#agent = { id, agent }
    return agent
  }

  #exchange(
    request: HttpRequest,
    { agent, headers }: Credentials,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    const { server } = this.#options
    const { request: open } = server.protocol === 'http:' ? http : https
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
          ...(signal !== undefined && { signal }),
        },
        (incoming) => {
          resolve({
            status: incoming.statusCode ?? 0,
            headers: plainHeaders(incoming.headers),
            body: incoming,
          })
        },
      )
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        reject(outgoing.reusedSocket && error.code === 'ECONNRESET' ? new LostReuseError(error) : error)
      })
      outgoing.end(request.body)
    })
  }
}

/** A kept connection was closed before the answer began. */
class LostReuseError extends Error {
  constructor(cause: Error) {
    super('the connection was closed by the server', { cause })
    this.name = 'LostReuseError'
  }
}

function isLostReuse(error: unknown): boolean {
  return error instanceof LostReuseError
}

function plainHeaders(headers: http.IncomingHttpHeaders): Record<string, string> {
  const plain: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) plain[name] = Array.isArray(value) ? value.join(', ') : value
  return plain
}
