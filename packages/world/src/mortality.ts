import type { Transport } from '@tenon/runtime'

/** Answered to nobody: a dead process gets no replies. */
const never = new Promise<never>(() => undefined)

/**
 * A process that can die: at a chosen write to any server, before or after that server has carried
 * it out. From then on nothing is sent and nothing is answered.
 */
export class Mortality {
  readonly #crashAt: number
  readonly #when: 'before' | 'after'
  #writes = 0
  #isDead = false

  /** @param crashAt number of the write to die at, from 1; Infinity lives on. */
  constructor(crashAt: number, when: 'before' | 'after') {
    this.#crashAt = crashAt
    this.#when = when
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Writes sent so far, to all servers. */
  get writes(): number {
    return this.#writes
  }

  /** Dies now. */
  crash(): void {
    this.#isDead = true
  }

  /** The transport as this process uses it. */
  guard(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        if (this.#isDead) return await never
        const isLast = request.method !== 'GET' && ++this.#writes === this.#crashAt
        if (isLast) this.#isDead = true
        if (isLast && this.#when === 'before') return await never
        const response = await inner.send(request, signal)
        return this.#isDead ? await never : response
      },
    }
  }
}
