/**
 * Puts an {@link HttpHandler} on a socket. Node's modules for it are taken when they are needed: an import
 * would load its client of the web's kind too, in every thread, which takes a good part of a start.
 */
import type http from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type https from 'node:https'
import { createRequire } from 'node:module'
import type { AddressInfo, Socket } from 'node:net'
import type { Secret } from './log.ts'
import type { HttpHandler, HttpResponse } from './transport.ts'

const require = createRequire(import.meta.url)

export interface ListenOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
}

export interface HttpsOptions extends ListenOptions {
  /** PEM. */
  readonly certificate: string
  readonly privateKey: Secret
  /** PEM of the authority, sent along so that clients can complete the chain. */
  readonly certificateAuthority: string
}

/** How much a port that anybody may reach gives to strangers. */
export interface Guard {
  /** Connections at once; further ones are closed at once. */
  readonly connections: number
  /** Bytes of a request's body; a longer one is answered with 413. */
  readonly bodyBytes: number
  /** A request that is not complete by then has its connection closed. */
  readonly requestMs: number
}

/** A listening server. */
export interface SocketServer {
  readonly port: number
  /** `http://host:port` or `https://host:port`. */
  readonly url: string
  /** Stops listening and ends all connections, streams included. */
  close(): Promise<void>
}

/** Request bodies beyond this are refused, as Kubernetes does (3 MiB). */
const bodyLimitBytes = 3 * 1024 * 1024
/** A request may take as long as it likes: watches do. */
const timeouts = { keepAliveTimeout: 60_000, requestTimeout: 0 }

function guardedTimeouts({ requestMs }: Guard) {
  return {
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: requestMs,
    connectionsCheckingInterval: requestMs / 10,
  }
}

/**
 * Serves plain HTTP. A handler that rejects has its connection broken.
 * @throws Error naming the port when it is taken or not allowed.
 */
export async function serveHttp(
  handler: HttpHandler,
  options: ListenOptions & { readonly guard?: Guard },
): Promise<SocketServer> {
  const { createServer } = require('node:http') as typeof http
  const { guard } = options
  const server = createServer(
    guard === undefined ? timeouts : guardedTimeouts(guard),
    (request, response) => void answer(handler, request, response, guard?.bodyBytes),
  )
  if (guard !== undefined) server.maxConnections = guard.connections
  return await listen(server, 'http', options)
}

/**
 * Serves HTTPS. A handler that rejects has its connection broken.
 * @throws Error naming the port when it is taken or not allowed.
 */
export async function serveHttps(handler: HttpHandler, options: HttpsOptions): Promise<SocketServer> {
  const { createServer } = require('node:https') as typeof https
  const server = createServer(
    {
      ...timeouts,
      cert: options.certificate + options.certificateAuthority,
      key: options.privateKey.reveal(),
    },
    (request, response) => void answer(handler, request, response),
  )
  server.on('secureConnection', endOnError)
  return await listen(server, 'https', options)
}

async function listen(server: Server, scheme: string, { host, port }: ListenOptions): Promise<SocketServer> {
  const sockets = new Set<Socket>()
  // From the first byte on: a connection in the middle of its handshake must not hold up closing.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
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

/** A client that goes away in the middle of something is no failure of the server. */
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
  mostBytes = bodyLimitBytes,
): Promise<void> {
  const { socket } = request
  const gone = new AbortController()
  response.on('close', () => {
    gone.abort()
  })
  try {
    const body = await readBody(request, mostBytes)
    if (body === undefined) {
      response.writeHead(413, { connection: 'close' }).end('the request is too large\n', () => {
        socket.destroySoon()
      })
      return
    }
    const { method = 'GET', url: path = '/' } = request
    const headers = headersOf(request)
    const answered = await handler({ method, path, headers, ...(body.length > 0 && { body }) }, gone.signal)
    await send(answered, response, method, gone.signal)
  } catch {
    // A request or a reply that is lost on the way: the client sees its connection break.
    socket.destroy()
  }
}

async function readBody(request: IncomingMessage, mostBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > mostBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
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
  // A stream without events must still show its client that it has begun.
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
