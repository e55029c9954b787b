import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { HttpHandler, HttpResponse } from '@tenon/runtime'

export interface HttpOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
}

/** A listening server. */
export interface HttpServer {
  readonly port: number
  /** `http://host:port`. */
  readonly url: string
  /** Stops listening and ends all connections. */
  close(): Promise<void>
}

/** Request bodies beyond this are refused. */
const bodyLimitBytes = 1024 * 1024

/**
 * Puts a handler on an HTTP socket. A handler that rejects has its connection broken.
 * @throws Error naming the port when it is taken or not allowed.
 */
export async function serveHttp(handler: HttpHandler, options: HttpOptions): Promise<HttpServer> {
  const { host, port } = options
  const sockets = new Set<Socket>()
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    void answer(handler, request, response)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(listenError(error, options))
    })
    server.listen(port, host, resolve)
  })
  const actual = (server.address() as AddressInfo).port
  return {
    port: actual,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve()
        })
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function listenError(error: NodeJS.ErrnoException, { host, port }: HttpOptions): Error {
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
): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => {
    gone.abort()
  })
  try {
    const body = await readBody(request)
    if (body === undefined) {
      response.writeHead(413, { connection: 'close' }).end('the request is too large\n')
      return
    }
    const { method = 'GET', url: path = '/' } = request
    const headers = headersOf(request)
    await send(await handler({ method, path, headers, body }, gone.signal), response)
  } catch {
    // A request or a reply that is lost on the way: the client sees its connection break.
    request.socket.destroy()
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

function headersOf(request: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return headers
}

async function send(answered: HttpResponse, response: ServerResponse): Promise<void> {
  const chunks: Uint8Array[] = []
  for await (const chunk of answered.body) {
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  }
  const body = Buffer.concat(chunks)
  response.writeHead(answered.status, { ...answered.headers, 'content-length': String(body.length) })
  response.end(body)
}
