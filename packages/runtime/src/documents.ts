/**
 * Response bodies of in-process servers. A remote client reads them as JSON text; a client in the same process
 * takes the documents without serialization. Both share them, so nobody may change them.
 */

export class DocumentBody implements AsyncIterable<string> {
  readonly document: unknown
  readonly #text: AsyncIterable<string>

  /** @param text the same as JSON; generated only if somebody reads it. */
  constructor(document: unknown, text: AsyncIterable<string>) {
    this.document = document
    this.#text = text
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.#text[Symbol.asyncIterator]()
  }
}

/** A stream of documents, such as watch events. Documents of one chunk arrive together. */
export class DocumentStream<D = unknown> implements AsyncIterable<string> {
  readonly documents: AsyncIterable<readonly D[]>
  readonly #textOf: (document: D) => string

  /** @param textOf serializes a document, including the separator after it. */
  constructor(documents: AsyncIterable<readonly D[]>, textOf: (document: D) => string) {
    this.documents = documents
    this.#textOf = textOf
  }

  /** Transforms the stream. */
  through(pass: (documents: AsyncIterable<readonly D[]>) => AsyncIterable<readonly D[]>): DocumentStream<D> {
    return new DocumentStream(pass(this.documents), this.#textOf)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for await (const documents of this.documents) yield documents.map(this.#textOf).join('')
  }
}
