/** Requests over HTTPS with keep-alive connections. */
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { HttpRequest, HttpResponse, Transport } from '@tenon/runtime'

/** Sends to the scheme, host and port of one URL; its path is ignored. */
export class HttpsTransport implements Transport {
  readonly #url: URL
  readonly #agent: HttpAgent

  constructor(endpoint: string) {
    this.#url = new URL(endpoint)
    const settings = { keepAlive: true, maxSockets: 32 }
    this.#agent = this.#url.protocol === 'https:' ? new HttpsAgent(settings) : new HttpAgent(settings)
  }

  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    const send = this.#url.protocol === 'https:' ? httpsRequest : httpRequest
    return new Promise((resolve, reject) => {
      const outgoing = send(
        {
          protocol: this.#url.protocol,
          hostname: this.#url.hostname.replace(/^\[(.*)\]$/, '$1'),
          ...(this.#url.port === '' ? {} : { port: this.#url.port }),
          method: request.method,
          path: request.path,
          headers: request.headers,
          agent: this.#agent,
          ...(signal === undefined ? {} : { signal }),
        },
        (incoming) => {
          resolve({ status: incoming.statusCode ?? 0, headers: headersOf(incoming), body: incoming })
        },
      )
      outgoing.on('error', reject)
      outgoing.end(request.body)
    })
  }

  /** Closes kept connections. */
  close(): void {
    this.#agent.destroy()
  }
}

function headersOf(incoming: IncomingMessage): Record<string, string> {
  const entries = Object.entries(incoming.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ])
  return Object.fromEntries(entries) as Record<string, string>
}
