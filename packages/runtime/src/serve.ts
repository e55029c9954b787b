/**
 * Serves an {@link HttpHandler} on a socket. Node's HTTP modules are loaded on first use: a static import would
 * also load Node's fetch client in every thread, which slows down starts.
 */
import type http from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type https from 'node:https'
import { createRequire } from 'node:module'
import type { AddressInfo, Socket } from 'node:net'
import type { Secret } from './log.ts'
import { type HttpHandler, type HttpRequest, type HttpResponse, readText } from './transport.ts'

const require = createRequire(import.meta.url)

export interface ListenOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Rejects a request by its headers, before its body is read: a client without authentication cannot send one. */
  readonly refuses?: (head: HttpRequest) => HttpResponse | undefined
  /** A header that was sent twice is joined by commas, so that a handler sees it; otherwise the first one counts. */
  readonly joinDuplicateHeaders?: boolean
}

/** A certificate in PEM, with its chain, and its key. */
export interface ServedCertificate {
  readonly certificate: string
  readonly privateKey: Secret
}

export interface HttpsOptions extends ListenOptions, ServedCertificate {
  /** CA certificate in PEM, sent along so that clients can complete the chain; unless the chain is complete. */
  readonly certificateAuthority?: string
  readonly guard?: Guard
}

/** Limits for clients that are not authenticated. */
export interface Guard {
  /** Maximum number of connections without a complete request; a new one replaces the oldest. */
  readonly connections: number
  /** Maximum size of a request body; a larger one gets 413. */
  readonly bodyBytes: number
  /** A connection is closed if its request is not complete after this time. */
  readonly requestMs: number
}

export interface SocketServer {
  readonly port: number
  /** `http://host:port` or `https://host:port`. */
  readonly url: string
  /** Stops listening and closes all connections, including streams. */
  close(): Promise<void>
}

export interface SecureServer extends SocketServer {
  /**
   * New connections get this certificate.
   * @throws Error if it cannot be read, or the key is not its own; the former one stays.
   */
  present(served: ServedCertificate): void
}

/** Default limits. Kubernetes accepts 3 MiB per body too. */
const usualGuard: Guard = { connections: 100, bodyBytes: 3 * 1024 * 1024, requestMs: 30_000 }
/** Limit of the bodies that are read at the same time, as a multiple of the largest one. */
const bodiesAtOnce = 4
const keepAliveMs = 60_000

/** Timeouts until a request is complete. The response may take as long as it likes, as watches do. */
function timeoutsOf(guard: Guard | undefined) {
  const { requestMs } = guard ?? usualGuard
  return {
    headersTimeout: Math.min(10_000, requestMs),
    requestTimeout: requestMs,
    keepAliveTimeout: guard === undefined ? keepAliveMs : requestMs,
    connectionsCheckingInterval: Math.min(1000, requestMs / 10),
  }
}

/**
 * Serves plain HTTP. If the handler rejects, the connection is closed.
 * @throws Error naming the port if it is in use or not permitted.
 */
export async function serveHttp(
  handler: HttpHandler,
  options: ListenOptions & { readonly guard?: Guard },
): Promise<SocketServer> {
  const { createServer } = require('node:http') as typeof http
  const { guard } = options
  const port = new GuardedPort(handler, guard ?? usualGuard, options)
  const { joinDuplicateHeaders = false } = options
  const server = createServer({ ...timeoutsOf(guard), joinDuplicateHeaders }, port.answer)
  // Connections that are being answered count in addition to those that are waiting.
  if (guard !== undefined) server.maxConnections = 2 * guard.connections
  return await listen(server, 'http', options, port)
}

/**
 * Serves HTTPS. If the handler rejects, the connection is closed.
 * @throws Error naming the port if it is in use or not permitted.
 */
export async function serveHttps(handler: HttpHandler, options: HttpsOptions): Promise<SecureServer> {
  const { createServer } = require('node:https') as typeof https
  const { certificateAuthority = '', guard } = options
  const port = new GuardedPort(handler, guard ?? usualGuard, options)
  const pem = ({ certificate, privateKey }: ServedCertificate) => ({
    cert: certificate + certificateAuthority,
    key: privateKey.reveal(),
  })
  const server = createServer(
    {
      ...timeoutsOf(guard),
      joinDuplicateHeaders: options.joinDuplicateHeaders ?? false,
      handshakeTimeout: 10_000,
      ...pem(options),
    },
    port.answer,
  )
  if (guard !== undefined) server.maxConnections = 2 * guard.connections
  server.on('secureConnection', endOnError)
  const listening = await listen(server, 'https', options, port)
  return {
    ...listening,
    present: (served) => {
      server.setSecureContext(pem(served))
    },
  }
}

/** Keeps idle connections and endless requests from displacing real requests. */
class GuardedPort {
  readonly #handler: HttpHandler
  readonly #guard: Guard
  readonly #refuses: NonNullable<ListenOptions['refuses']>
  /** Connections without a request in progress, by address; oldest first. */
  readonly #waiting = new Map<string, Socket>()
  /** Total size of the bodies that are being read. */
  #bytes = 0

  constructor(handler: HttpHandler, guard: Guard, { refuses = () => undefined }: ListenOptions) {
    this.#handler = handler
    this.#guard = guard
    this.#refuses = refuses
  }

  connected(socket: Socket): void {
    const name = nameOf(socket)
    socket.on('close', () => this.#waiting.delete(name))
    this.#wait(name, socket)
  }

  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    const name = nameOf(socket)
    response.on('close', () => {
      if (!socket.destroyed) this.#wait(name, socket)
    })
    const head = headOf(request)
    const refusal = this.#refuses(head)
    const reading = async () => {
      const body = await this.#readBody(request)
      this.#waiting.delete(name)
      return body
    }
    if (refusal === undefined) void answer(this.#handler, request, response, { head, reading })
    else void refuse(refusal, request, response)
  }

  #wait(name: string, socket: Socket): void {
    this.#waiting.set(name, socket)
    const [oldest] = this.#waiting
    if (oldest === undefined || this.#waiting.size <= this.#guard.connections) return
    this.#waiting.delete(oldest[0])
    oldest[1].destroy()
  }

  /** Undefined if the body, or all bodies together, exceed the limit. */
  async #readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
    const { bodyBytes } = this.#guard
    const chunks: Uint8Array[] = []
    let size = 0
    try {
      for await (const chunk of request as AsyncIterable<Uint8Array>) {
        size += chunk.length
        this.#bytes += chunk.length
        if (size > bodyBytes || this.#bytes > bodiesAtOnce * bodyBytes) return undefined
        chunks.push(chunk)
      }
    } finally {
      this.#bytes -= size
    }
    return Buffer.concat(chunks)
  }
}

/** The same for the TLS socket and the raw socket of a connection. */
function nameOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

async function listen(
  server: Server,
  scheme: string,
  { host, port }: ListenOptions,
  guarded: GuardedPort,
): Promise<SocketServer> {
  const sockets = new Set<Socket>()
  // Tracked from the start: a connection in its TLS handshake must not delay closing.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    guarded.connected(socket)
    endOnError(socket)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(listenError(error, host, port))
    })
    server.listen(port, host, resolve)
  })
  const actual = (server.address() as AddressInfo).port
  return {
    port: actual,
    url: `${scheme}://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve()
        })
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** A client that disconnects in the middle of a request is not an error of the server. */
function endOnError(socket: Socket): void {
  socket.on('error', () => socket.destroy())
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE') {
    return new Error(`port ${port} on ${host} is already in use`, { cause: error })
  }
  if (error.code === 'EACCES') return new Error(`no permission to listen on port ${port}`, { cause: error })
  return new Error(`cannot listen on ${host}:${port}: ${error.message}`, { cause: error })
}

async function answer(
  handler: HttpHandler,
  request: IncomingMessage,
  response: ServerResponse,
  { head, reading }: { readonly head: HttpRequest; readonly reading: () => Promise<Uint8Array | undefined> },
): Promise<void> {
  const { socket } = request
  const gone = new AbortController()
  response.on('close', () => {
    gone.abort()
  })
  try {
    const body = await reading()
    if (body === undefined) {
      endWith(response.writeHead(413, { connection: 'close' }), 'the request is too large\n', socket)
      return
    }
    const answered = await handler({ ...head, ...(body.length > 0 && { body }) }, gone.signal)
    await send(answered, response, head.method, gone.signal)
  } catch {
    // The handler rejected. To the client, a closed connection looks like a lost request or response.
    socket.destroy()
  }
}

/** Responds without reading the body; the connection is closed. */
async function refuse(
  { status, headers, body }: HttpResponse,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { socket } = request
  try {
    const text = await readText(body)
    endWith(response.writeHead(status, { ...headers, connection: 'close' }), text, socket)
  } catch {
    socket.destroy()
  }
}

function endWith(response: ServerResponse, text: string, socket: Socket): void {
  response.end(text, () => {
    socket.destroySoon()
  })
}

function headOf(request: IncomingMessage): HttpRequest {
  const { method = 'GET', url: path = '/' } = request
  return { method, path, headers: headersOf(request) }
}

function headersOf(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  )
}

async function send(
  answered: HttpResponse,
  response: ServerResponse,
  method: string,
  gone: AbortSignal,
): Promise<void> {
  response.writeHead(answered.status, answered.headers)
  // A stream without events must still send its headers.
  response.flushHeaders()
  if (method !== 'HEAD' && answered.status !== 304) {
    for await (const chunk of answered.body) {
      if (gone.aborted) return
      if (!response.write(chunk)) await drained(response)
    }
  }
  response.end()
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
