/**
 * Bodies of servers that run in this process: JSON text for whoever reads on, the documents themselves for a
 * client beside the server. Documents are plain JSON data that the two share; nobody may change them.
 */

/** One document. */
export class DocumentBody implements AsyncIterable<string> {
  readonly document: unknown
  readonly #text: AsyncIterable<string>

  /** @param text the same as JSON; made only when it is read. */
  constructor(document: unknown, text: AsyncIterable<string>) {
    this.document = document
    this.#text = text
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.#text[Symbol.asyncIterator]()
  }
}

/** Documents as they come, such as the events of a watch; those of one chunk of text come together. */
export class DocumentStream<D = unknown> implements AsyncIterable<string> {
  readonly documents: AsyncIterable<readonly D[]>
  readonly #textOf: (document: D) => string

  /** @param textOf a document as it stands in the text, with what separates it from the next. */
  constructor(documents: AsyncIterable<readonly D[]>, textOf: (document: D) => string) {
    this.documents = documents
    this.#textOf = textOf
  }

  /** The same stream with something between it and its reader. */
  through(pass: (documents: AsyncIterable<readonly D[]>) => AsyncIterable<readonly D[]>): DocumentStream<D> {
    return new DocumentStream(pass(this.documents), this.#textOf)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for await (const documents of this.documents) yield documents.map(this.#textOf).join('')
  }
}
