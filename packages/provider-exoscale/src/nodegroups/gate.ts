/** Limits how many tasks run at a time; others wait in order. */
export class Gate {
  readonly #width: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(width: number) {
    this.#width = width
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#width) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
