/** One connection to a port of a pod, through the API server. */
import type { IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { WebSocket } from 'ws'
import type { UpgradeAddress } from '../config/upgrade-address.ts'
import { KubeError } from '../contract.ts'
import { dataFrame, type Frame, FrameReader, portForwardProtocol } from './frames.ts'
import type { PodPort } from './pod-port.ts'
import { errorOfResponse, errorOfTransport } from '../client/errors.ts'

/**
 * Opens a connection; resolves once the kubelet has confirmed the port.
 * @throws KubeError `forbidden`, `notFound` … as the server responds, `transport` if the pod refuses the connection.
 */
export function openForwardedConnection(
  target: PodPort,
  { url, agent, headers }: UpgradeAddress,
  signal?: AbortSignal,
): Promise<Duplex> {
  const socket = new WebSocket(url, portForwardProtocol, {
    agent,
    headers,
    perMessageDeflate: false,
    skipUTF8Validation: true,
  })
  return new Promise((resolve, reject) => {
    const connection = new ForwardedConnection(socket, target, resolve)
    const refuse = async (response: IncomingMessage) => {
      connection.destroy(await refusalOf(`GET ${url.pathname}`, response))
    }
    const onAbort = () => connection.destroy(asError(signal?.reason))
    connection.once('error', reject)
    connection.once('close', () => signal?.removeEventListener('abort', onAbort))
    socket.once('unexpected-response', (request, response) => {
      void refuse(response).finally(() => request.destroy())
    })
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}

class ForwardedConnection extends Duplex {
  readonly #socket: WebSocket
  readonly #target: PodPort
  readonly #frames: FrameReader
  readonly #onConfirmed: (connection: Duplex) => void
  #error: Error | undefined

  constructor(socket: WebSocket, target: PodPort, onConfirmed: (connection: Duplex) => void) {
    // The protocol has no half-close, so both directions stay open.
    super({ allowHalfOpen: true })
    this.#socket = socket
    this.#target = target
    this.#frames = new FrameReader(target.port)
    this.#onConfirmed = onConfirmed
    socket.on('message', (message: Buffer) => {
      this.#take(this.#frames.read(message))
    })
    socket.on('close', () => {
      this.#end()
    })
    socket.on('error', (cause) => {
      this.#error ??= cause
    })
  }

  override _read(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.send(dataFrame(chunk), { binary: true }, done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.terminate()
    done(error)
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case 'confirmation':
        if (this.#frames.isConfirmed) this.#onConfirmed(this)
        return
      case 'data':
        if (!this.push(frame.bytes)) this.#socket.pause()
        return
      case 'error':
        if (frame.text !== '') this.destroy(this.#failure(frame.text))
        return
      case 'violation':
        this.destroy(this.#failure(`not ${portForwardProtocol}: ${frame.text}`))
        return
    }
  }

  #end(): void {
    if (this.destroyed) return
    if (!this.#frames.isConfirmed)
      this.destroy(this.#failure(this.#error?.message ?? 'closed before the port was confirmed'))
    else if (this.#error !== undefined) this.destroy(this.#failure(this.#error.message))
    else this.push(null)
  }

  #failure(text: string): KubeError {
    const { namespace, pod, port } = this.#target
    const cause = this.#error
    const message = `port-forward to port ${port} of pod ${namespace}/${pod}: ${text}`
    return new KubeError('transport', 0, message, cause === undefined ? {} : { cause })
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted')
}

/** A Status is short; of longer responses the beginning is enough. */
const longestAnswerBytes = 64 * 1024

/** The error of a response other than 101. */
async function refusalOf(asked: string, response: IncomingMessage): Promise<KubeError> {
  try {
    let text = ''
    for await (const chunk of response) {
      text += String(chunk)
      if (text.length > longestAnswerBytes) break
    }
    const status = response.statusCode ?? 0
    return errorOfResponse(asked, { status, headers: {} }, text, { now: () => 0 })
  } catch (cause) {
    return errorOfTransport(asked, cause)
  }
}
