/** The HTTP API of Harbour Cloud, as far as Tenon needs it. */
import { oneChunk, readText, type Transport } from '@tenon/provider'

/** A kind of server that can be ordered. */
export interface Size {
  readonly name: string
  readonly cpus: number
  readonly memoryGiB: number
  /** Prices by zone; a zone that is missing does not have the size. */
  readonly pricePerHour: Readonly<Record<string, number>>
}

export interface Image {
  readonly id: string
  readonly name: string
}

export interface Server {
  readonly id: string
  readonly name: string
  readonly size: string
  readonly zone: string
  /** Id of its image. */
  readonly image: string
  readonly tags: Readonly<Record<string, string>>
  readonly state: 'running' | 'deleting'
  /** RFC 3339. */
  readonly createdAt: string
}

/** What is asked for when a server is ordered. */
export type ServerOrder = Pick<Server, 'name' | 'size' | 'zone' | 'image' | 'tags'> & {
  /** The script that it runs at its first start. */
  readonly userData: string
}

/** The cloud did not do what it was asked, or did not answer. */
export class CloudError extends Error {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number
  /** What the cloud calls it, for example `sold_out`. */
  readonly code: string
  readonly retryAfterMs: number | undefined

  constructor(status: number, code: string, message: string, retryAfterMs?: number, cause?: unknown) {
    super(message, { cause })
    this.name = 'CloudError'
    this.status = status
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** A client of the API. All methods reject with {@link CloudError}. */
export class CloudApi {
  readonly #transport: Transport
  readonly #headers: Readonly<Record<string, string>>

  constructor(transport: Transport, token: string, userAgent: string) {
    this.#transport = transport
    this.#headers = { authorization: `Bearer ${token}`, 'user-agent': userAgent }
  }

  async sizes(signal?: AbortSignal): Promise<readonly Size[]> {
    return await this.#ask<readonly Size[]>('GET', '/v1/sizes', signal)
  }

  async images(signal?: AbortSignal): Promise<readonly Image[]> {
    return await this.#ask<readonly Image[]>('GET', '/v1/images', signal)
  }

  async servers(signal?: AbortSignal): Promise<readonly Server[]> {
    return await this.#ask<readonly Server[]>('GET', '/v1/servers', signal)
  }

  async server(id: string, signal?: AbortSignal): Promise<Server> {
    return await this.#ask<Server>('GET', `/v1/servers/${id}`, signal)
  }

  async createServer(order: ServerOrder, signal?: AbortSignal): Promise<Server> {
    return await this.#ask<Server>('POST', '/v1/servers', signal, order)
  }

  /** Resolves when the cloud has accepted; the server is there for a while longer. */
  async deleteServer(id: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('DELETE', `/v1/servers/${id}`, signal)
  }

  async #ask<T>(method: string, path: string, signal?: AbortSignal, body?: object): Promise<T> {
    const content = body && { 'content-type': 'application/json' }
    const request = {
      method,
      path,
      headers: { ...this.#headers, ...content },
      ...(body && { body: JSON.stringify(body) }),
    }
    let status: number
    let headers: Readonly<Record<string, string>>
    let text: string
    try {
      const response = await this.#transport.send(request, signal)
      ;({ status, headers } = response)
      text = await readText(response.body)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new CloudError(0, 'no_answer', `${method} ${path}: ${why}`, undefined, cause)
    }
    if (status < 400) return (text === '' ? undefined : JSON.parse(text)) as T
    const seconds = Number(headers['retry-after'])
    const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined
    throw new CloudError(status, codeIn(text), `${method} ${path}: ${status} ${text}`, retryAfterMs)
  }
}

function codeIn(text: string): string {
  try {
    const { code } = JSON.parse(text) as { readonly code?: unknown }
    return typeof code === 'string' ? code : ''
  } catch {
    return ''
  }
}

/** How long the cloud may take for an answer. */
const patienceMs = 30_000

/** Carries requests to the cloud at `url`. */
export function overHttp(url: string): Transport {
  return {
    send: async ({ method, path, headers, body }, signal) => {
      const limit = AbortSignal.timeout(patienceMs)
      const response = await fetch(new URL(path, url), {
        method,
        headers,
        ...(typeof body === 'string' && { body }),
        signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
      })
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: oneChunk(await response.text()),
      }
    },
  }
}
