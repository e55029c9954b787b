/** A body that a test feeds while it is read. */
export class ByteStream implements AsyncIterable<string> {
  readonly #chunks: string[] = []
  #wake: () => void = () => undefined
  #end: { readonly error?: Error } | undefined

  write(chunk: string): void {
    if (this.#end !== undefined) return
    this.#chunks.push(chunk)
    this.#wake()
  }

  end(): void {
    this.#end ??= {}
    this.#wake()
  }

  /** Breaks the connection; what was written before still arrives. */
  fail(error: Error): void {
    this.#end ??= { error }
    this.#wake()
  }

  get isOpen(): boolean {
    return this.#end === undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      for (let chunk = this.#chunks.shift(); chunk !== undefined; chunk = this.#chunks.shift()) yield chunk
      if (this.#end?.error !== undefined) throw this.#end.error
      if (this.#end !== undefined) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
