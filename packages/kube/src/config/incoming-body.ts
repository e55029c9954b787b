/** The body of an answer, read as it arrives. */
import type { IncomingMessage } from 'node:http'

/**
 * Chunk by chunk, at the pace of who reads. What Node itself offers for this is made for any stream, and takes
 * longer than reading a short answer does.
 */
export class IncomingBody implements AsyncIterable<Uint8Array> {
  readonly #incoming: IncomingMessage

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
  }

  /** May be called once. Leaving the iteration early closes the connection. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return new BodyReader(this.#incoming)
  }
}

class BodyReader implements AsyncIterator<Uint8Array, undefined> {
  readonly #incoming: IncomingMessage
  #wake: () => void = () => undefined
  #isOver = false
  #error: Error | undefined

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
    incoming
      .on('readable', () => {
        this.#wake()
      })
      .on('end', () => {
        this.#end()
      })
      .on('error', (error) => {
        this.#end(error)
      })
      .on('close', () => {
        // After the end of every answer, too; and an error takes longer to make than most answers to read.
        if (!this.#isOver) this.#end(new Error('the connection was closed before the end of the answer'))
      })
    if (incoming.errored !== null) this.#end(incoming.errored)
    else if (incoming.readableEnded) this.#end()
    else if (incoming.destroyed) this.#end(new Error('the answer was given up'))
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      if (this.#error !== undefined) throw this.#error
      const chunk = this.#incoming.read() as Uint8Array | null
      if (chunk !== null) return { done: false, value: chunk }
      if (this.#isOver) return { done: true, value: undefined }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#isOver) this.#incoming.destroy()
    return Promise.resolve({ done: true, value: undefined })
  }

  /** What ended already does not fail any more. */
  #end(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#error = error
    this.#wake()
  }
}
