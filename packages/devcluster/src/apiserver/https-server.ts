import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { HttpHandler, HttpResponse, Secret } from '@tenon/runtime'

export interface HttpsOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly privateKey: Secret
  /** PEM of the authority, sent along so that clients can complete the chain. */
  readonly certificateAuthority: string
}

/** A listening server. */
export interface HttpsServer {
  readonly port: number
  /** `https://host:port`. */
  readonly url: string
  /** Stops listening and ends all connections, watches included. */
  close(): Promise<void>
}

/** Request bodies beyond this are refused, as Kubernetes does (3 MiB). */
const bodyLimitBytes = 3 * 1024 * 1024

/**
 * Puts a handler on an HTTPS socket.
 * @throws Error naming the port when it is taken or not allowed.
 */
export async function serveHttps(handler: HttpHandler, options: HttpsOptions): Promise<HttpsServer> {
  const { host, port } = options
  const server = createServer(
    {
      cert: options.certificate + options.certificateAuthority,
      key: options.privateKey.reveal(),
      keepAliveTimeout: 60_000,
      requestTimeout: 0,
    },
    (request, response) => void answer(handler, request, response),
  )
  const sockets = new Set<Socket>()
  // From the first byte on: a connection in the middle of its handshake must not hold up closing.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('secureConnection', (socket) => {
    // A client that goes away in the middle of something is no failure of the server.
    socket.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)))
    server.listen(port, host, resolve)
  })
  const actual = (server.address() as AddressInfo).port
  return {
    port: actual,
    url: `https://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new Error(`port ${port} on ${host} is already in use`, { cause: error })
  if (error.code === 'EACCES') return new Error(`no permission to listen on port ${port}`, { cause: error })
  return new Error(`cannot listen on ${host}:${port}: ${error.message}`, { cause: error })
}

async function answer(
  handler: HttpHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  try {
    const body = await readBody(request)
    if (body === undefined) {
      response.writeHead(413).end('the request is too large\n')
      return
    }
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(request.headers))
      if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
    const { method = 'GET', url: path = '/' } = request
    const answered = await handler(
      { method, path, headers, ...(body.length === 0 ? {} : { body }) },
      gone.signal,
    )
    await send(answered, response, method, gone.signal)
  } catch {
    // The connection broke; there is nobody left to tell.
    response.destroy()
  }
}

async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > bodyLimitBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function send(
  answered: HttpResponse,
  response: ServerResponse,
  method: string,
  gone: AbortSignal,
): Promise<void> {
  response.writeHead(answered.status, answered.headers)
  // A watch without events must still show its client that it has begun.
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
