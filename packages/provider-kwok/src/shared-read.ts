/** Shares one read between concurrent callers. */

/**
 * Shares a read among concurrent callers. Each result comes from a read that began after the call, so it is as fresh as
 * the caller's own. At most one read is in progress, and one is to follow.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>
  #current: Promise<unknown> = Promise.resolve()
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  /** Rejects if the read does. */
  ask(): Promise<T> {
    this.#next ??= this.#follow()
    return this.#next
  }

  async #follow(): Promise<T> {
    await this.#current
    this.#next = undefined
    const answer = this.#read()
    this.#current = Promise.allSettled([answer])
    return await answer
  }
}
