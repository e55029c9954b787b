/** Requests over HTTPS with keep-alive connections, through the proxy of the environment if there is one. */
import {
  Agent as HttpAgent,
  type ClientRequestArgs,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import type { ProviderEnvironment } from '@tenon/provider'
import type { HttpRequest, HttpResponse, Transport } from '@tenon/runtime'
import { connectionError, connectTo, proxyAuthorization, UntrustedError } from './connection/connect.ts'
import { type Route, routeTo } from './connection/proxy.ts'
import { readTrust, type Trust } from './connection/trust.ts'

const settings = { keepAlive: true, maxSockets: 32 }

/** Sends to the scheme, host and port of one URL; its path is ignored. */
export class HttpsTransport implements Transport {
  readonly #url: URL
  readonly #env: ProviderEnvironment
  readonly #route: Route
  readonly #agent: HttpAgent
  #trust: Promise<Trust> | undefined

  /**
   * @param env names proxies and authorities, see `connection/`.
   * @throws ProviderSettingError for an invalid proxy.
   */
  constructor(endpoint: string, env: ProviderEnvironment) {
    this.#url = new URL(endpoint)
    this.#env = env
    this.#route = routeTo(this.#url, env)
    this.#agent = this.#url.protocol === 'https:' ? new HttpsAgent(settings) : new HttpAgent(settings)
    this.#agent.createConnection = (_options, taken) => {
      this.#connect().then(
        (socket) => taken?.(null, socket),
        (error: unknown) => taken?.(error as Error, undefined as unknown as Duplex),
      )
      return undefined
    }
  }

  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    const send = this.#url.protocol === 'https:' ? httpsRequest : httpRequest
    return new Promise((resolve, reject) => {
      const outgoing = send(this.#arguments(request, signal), (incoming) => {
        resolve({ status: incoming.statusCode ?? 0, headers: headersOf(incoming), body: incoming })
      })
      // Node does not report an abort while there is no connection.
      const onAbort = () => {
        const { reason } = signal as { readonly reason?: unknown }
        const said = reason instanceof Error ? reason.message : String(reason)
        reject(connectionError(this.#url, this.#route, said, reason))
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      outgoing.on('socket', () => signal?.removeEventListener('abort', onAbort))
      outgoing.on('error', reject)
      outgoing.end(request.body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }

  #arguments({ method, path, headers }: HttpRequest, signal: AbortSignal | undefined): ClientRequestArgs {
    const { protocol, hostname, port, host, origin } = this.#url
    const isRelayed = this.#route.kind === 'proxied' && protocol === 'http:'
    return {
      protocol,
      hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
      ...(port === '' ? {} : { port }),
      method,
      path: isRelayed ? `${origin}${path}` : path,
      headers:
        this.#route.kind === 'proxied' && isRelayed
          ? { host, ...headers, ...proxyAuthorization(this.#route.proxy.url) }
          : headers,
      agent: this.#agent,
      ...(signal === undefined ? {} : { signal }),
    }
  }

  async #connect(): Promise<Duplex> {
    this.#trust ??= readTrust(this.#env)
    try {
      return await connectTo(this.#url, this.#route, await this.#trust)
    } catch (error) {
      // The authority may have been added to a file meanwhile.
      if (error instanceof Error && error.cause instanceof UntrustedError) this.#trust = undefined
      throw error
    }
  }
}

function headersOf(incoming: IncomingMessage): Record<string, string> {
  const entries = Object.entries(incoming.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ])
  return Object.fromEntries(entries) as Record<string, string>
}
