/** A unary gRPC call over HTTP/2 with TLS. */
import type http2 from 'node:http2'
import { createRequire } from 'node:module'
import type { Clock } from '@tenon/runtime'

const require = createRequire(import.meta.url)

export interface UnaryTarget {
  /** `host:port`. */
  readonly address: string
  /** PEM of the certificate authorities that may have signed the server's certificate. */
  readonly certificateAuthority: string
  readonly clock: Pick<Clock, 'after'>
  readonly timeoutMs: number
  /** Maximum size of a response. */
  readonly mostBytes: number
}

/**
 * Sends the message on a new connection and returns the response.
 * @param path `/package.Service/Method`.
 * @throws Error with the cause; the signal's reason.
 */
export async function callUnary(
  target: UnaryTarget,
  path: string,
  message: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  signal.throwIfAborted()
  const { address, certificateAuthority, clock, timeoutMs } = target
  const { connect } = require('node:http2') as typeof http2
  const session = connect(`https://${address}`, { ca: certificateAuthority })
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => {
    reject(signal.reason as Error)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  const cancel = clock.after(timeoutMs, () => {
    reject(new Error(`no answer from ${address} within ${timeoutMs} ms`))
  })
  session.on('error', (error: Error) => {
    reject(new Error(`${address}: ${error.message}`, { cause: error }))
  })
  try {
    return await Promise.race([exchange(session, target, path, message), promise])
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
    session.destroy()
  }
}

async function exchange(
  session: http2.ClientHttp2Session,
  { timeoutMs, mostBytes }: UnaryTarget,
  path: string,
  message: Uint8Array,
): Promise<Uint8Array> {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': `${timeoutMs}m`,
  })
  let headers: Readonly<Record<string, unknown>> = {}
  let trailers: Readonly<Record<string, unknown>> = {}
  stream.on('response', (received) => {
    headers = received
  })
  stream.on('trailers', (received) => {
    trailers = received
  })
  stream.end(framed(message))
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > mostBytes) throw new Error(`the answer is longer than ${mostBytes} bytes`)
    chunks.push(chunk)
  }
  if (headers[':status'] !== 200) throw new Error(`the server answered ${String(headers[':status'])}`)
  // A call that fails at once has its status in the headers.
  const status = trailers['grpc-status'] ?? headers['grpc-status']
  if (status !== '0')
    throw new Error(
      `gRPC status ${String(status)}: ${String(trailers['grpc-message'] ?? headers['grpc-message'] ?? 'no message')}`,
    )
  return unframed(Buffer.concat(chunks))
}

/** Uncompressed, prefixed with its length. */
function framed(message: Uint8Array): Uint8Array {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

function unframed(bytes: Buffer): Uint8Array {
  if (bytes.length < 5 || bytes[0] !== 0 || bytes.readUInt32BE(1) !== bytes.length - 5)
    throw new Error('the answer is not one plain message')
  return bytes.subarray(5)
}
