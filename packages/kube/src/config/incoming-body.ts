/** The body of a response, read as it arrives. */
import type { IncomingMessage } from 'node:http'
import type { Clock } from '@tenon/runtime'

/** Bytes that are buffered for a slow reader before the server has to wait. */
const heldBytes = 262_144

export interface Gathering {
  readonly clock: Clock
  /** Time between two reads, unless much has arrived or the body has ended; 0 = read at once. */
  readonly gatherMs: number
}

/**
 * Everything that has arrived, at the reader's pace. Node's generic async iterator takes longer than reading a short
 * response, and waking up for each of many small chunks takes even longer.
 */
export class IncomingBody implements AsyncIterable<Uint8Array> {
  readonly #incoming: IncomingMessage
  readonly #gathering: Gathering

  constructor(incoming: IncomingMessage, gathering: Gathering) {
    this.#incoming = incoming
    this.#gathering = gathering
  }

  /** Call it once. Ending the iteration early closes the connection. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return new BodyReader(this.#incoming, this.#gathering)
  }
}

class BodyReader implements AsyncIterator<Uint8Array, undefined> {
  readonly #incoming: IncomingMessage
  readonly #gathering: Gathering
  #chunks: Uint8Array[] = []
  #bytes = 0
  #readAt = Number.NEGATIVE_INFINITY
  #wake: (() => void) | undefined
  #isOver = false
  #error: Error | undefined

  constructor(incoming: IncomingMessage, gathering: Gathering) {
    this.#incoming = incoming
    this.#gathering = gathering
    incoming
      .on('data', (chunk: Uint8Array) => {
        this.#chunks.push(chunk)
        this.#bytes += chunk.length
        if (this.#bytes >= heldBytes) incoming.pause()
        if (this.#wake !== undefined && this.#waitMs() <= 0) this.#wake()
      })
      .on('end', () => {
        this.#end()
      })
      .on('error', (error) => {
        this.#end(error)
      })
      .on('close', () => {
        // Also called after the end of every response, where creating an error would take longer than reading
        // most responses.
        if (!this.#isOver) this.#end(new Error('the connection was closed before the end of the answer'))
      })
    if (incoming.errored !== null) this.#end(incoming.errored)
    else if (incoming.readableEnded) this.#end()
    else if (incoming.destroyed) this.#end(new Error('the answer was given up'))
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const waitMs = this.#waitMs()
      if (waitMs <= 0) {
        if (this.#bytes > 0) return { done: false, value: this.#taken() }
        if (this.#error !== undefined) throw this.#error
        return { done: true, value: undefined }
      }
      await this.#change(waitMs)
    }
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#isOver) this.#incoming.destroy()
    return Promise.resolve({ done: true, value: undefined })
  }

  /** Time until the next read. */
  #waitMs(): number {
    if (this.#isOver || this.#bytes >= heldBytes) return 0
    const { clock, gatherMs } = this.#gathering
    const pauseMs = gatherMs === 0 ? 0 : this.#readAt + gatherMs - clock.monotonic()
    return pauseMs <= 0 && this.#bytes === 0 ? Number.POSITIVE_INFINITY : pauseMs
  }

  async #change(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    this.#wake = () => {
      resolve(undefined)
    }
    const cancel =
      withinMs === Number.POSITIVE_INFINITY ? undefined : this.#gathering.clock.after(withinMs, this.#wake)
    await promise
    cancel?.()
    this.#wake = undefined
  }

  #taken(): Uint8Array {
    const chunks = this.#chunks
    this.#chunks = []
    this.#bytes = 0
    if (this.#gathering.gatherMs > 0) this.#readAt = this.#gathering.clock.monotonic()
    if (this.#incoming.isPaused()) this.#incoming.resume()
    const [only] = chunks
    return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks)
  }

  /** After the end, errors are ignored. */
  #end(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#error = error
    this.#wake?.()
  }
}
