/** Replicas that this process requested and that have no Node yet. */
import { NodeGroupError } from '@tenon/provider'

interface Request {
  remaining: number
  readonly settled: PromiseWithResolvers<void>
}

/** Requests of one resource. Whatever comes counts for the oldest of them, so that too little is taken back, not too much. */
export class AwaitedMachines {
  readonly #requests: Request[] = []
  /** Machines with Nodes as last seen. */
  #registered = 0

  get count(): number {
    return this.#requests.reduce((sum, { remaining }) => sum + remaining, 0)
  }

  /** @param registered Machines with Nodes now. */
  add(count: number, registered: number): Promise<void> {
    this.observe(registered)
    const settled = Promise.withResolvers<void>()
    // The loop may have ended, and nobody waits any more.
    settled.promise.catch(() => undefined)
    this.#requests.push({ remaining: count, settled })
    return settled.promise
  }

  observe(registered: number): void {
    let come = Math.max(0, registered - this.#registered)
    this.#registered = registered
    while (come > 0) {
      const [oldest] = this.#requests
      if (oldest === undefined) return
      const counted = Math.min(come, oldest.remaining)
      come -= counted
      oldest.remaining -= counted
      if (oldest.remaining > 0) return
      this.#requests.shift()
      oldest.settled.resolve()
    }
  }

  /** The newest requests are no longer awaited. */
  cancel(count: number, reason: string): void {
    let left = count
    while (left > 0) {
      const newest = this.#requests.at(-1)
      if (newest === undefined) return
      const counted = Math.min(left, newest.remaining)
      left -= counted
      newest.remaining -= counted
      newest.settled.reject(new NodeGroupError(reason))
      if (newest.remaining === 0) this.#requests.pop()
    }
  }
}
