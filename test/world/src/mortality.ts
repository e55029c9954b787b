import type { HttpRequest, Transport } from '@tenon/runtime'

/** When a process dies: at a write, numbered from 1, before the server has acted on it or after. */
export interface Death {
  readonly atWrite: number
  readonly when: 'before' | 'after'
}

/**
 * A process that can die: at a chosen write to any server, before or after that server has carried
 * it out. From then on nothing is sent and nothing is answered.
 */
export class Mortality {
  #death: Death
  #writes = 0
  #isDead = false
  /** Told of every write before it is sent, with its number; the process may die of it. */
  onWrite: (request: HttpRequest, write: number) => void = () => undefined

  /** @param crashAt number of the write to die at, from 1; Infinity lives on. */
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

  /** Counts writes again, and dies at one of them if told so. */
  countFromHere(death: Death = { atWrite: Number.POSITIVE_INFINITY, when: 'after' }): void {
    this.#writes = 0
    this.#death = death
  }

  /** Dies now. */
  crash(): void {
    this.#isDead = true
  }

  /** The transport as this process uses it. */
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

/** A dead process gets no replies; each waits on its own promise, so that nothing keeps it alive. */
async function unanswered(): Promise<never> {
  return await new Promise<never>(() => undefined)
}
