/** Shares one read between concurrent callers. */

/**
 * Shares a read among concurrent askers. Every answer comes from a read that began after it was asked for, so
 * that it is as fresh as one of the asker's own; there is at most one read in progress and one to follow.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>
  #current: Promise<unknown> = Promise.resolve()
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  /** Rejects as the read does. */
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
