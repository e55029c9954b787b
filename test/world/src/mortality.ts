import type { HttpRequest, Transport } from '@tenon/runtime'

/** When a process crashes: at a write, counted from 1, before or after the server has handled it. */
export interface Death {
  readonly atWrite: number
  readonly when: 'before' | 'after'
}

/**
 * A process that can crash at a chosen write to any server, before or after the server has handled it. After
 * that nothing is sent or received.
 */
export class Mortality {
  #death: Death
  #writes = 0
  #isDead = false
  /** Called before each write with its number. */
  onWrite: (request: HttpRequest, write: number) => void = () => undefined

  /** @param crashAt number of the write to crash at, counted from 1; Infinity: never. */
  constructor(crashAt: number, when: 'before' | 'after') {
    this.#death = { atWrite: crashAt, when }
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Writes sent so far, to all servers. */
  get writes(): number {
    return this.#writes
  }

  /** Restarts counting, and optionally sets another crash. */
  countFromHere(death: Death = { atWrite: Number.POSITIVE_INFINITY, when: 'after' }): void {
    this.#writes = 0
    this.#death = death
  }

  /** Crashes now. */
  crash(): void {
    this.#isDead = true
  }

  /** Wraps a connection of this process. */
  guard(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        if (this.#isDead) return await unanswered()
        const { atWrite, when } = this.#death
        const isWrite = request.method !== 'GET'
        if (isWrite) this.onWrite(request, ++this.#writes)
        if (this.#isDead) return await unanswered()
        const isLast = isWrite && this.#writes === atWrite
        if (isLast) this.#isDead = true
        if (isLast && when === 'before') return await unanswered()
        const response = await inner.send(request, signal)
        return this.#isDead ? await unanswered() : response
      },
    }
  }
}

/**
 * A crashed process gets no responses. Each call has its own promise, so that nothing keeps the process's
 * objects alive.
 */
async function unanswered(): Promise<never> {
  return await new Promise<never>(() => undefined)
}
