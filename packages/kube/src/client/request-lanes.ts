/** The client-side rate limit: one token bucket, and two queues of requests. */
import type { Clock } from '@tenon/runtime'
import type { Lane } from '../contract.ts'
import { type Rate, TokenBucket } from '../token-bucket.ts'

/**
 * Tokens the urgent line gets for each one of the normal line while both wait. The normal line
 * keeps a fifth of the rate, so that a flood of urgent requests slows it down but never stops it.
 */
const urgentTokensPerNormal = 4

/**
 * Requests of the normal line in progress at once. Against a server that has become slow, more of them
 * only slow each other down, and an urgent request would wait for a socket or for the server's queue.
 */
const normalAtOnce = 64

interface Waiter {
  readonly go: () => void
}

/**
 * Hands out the tokens of one bucket: first come first served within a lane, `together` before
 * `urgent` before `normal`. What is sent `together` does not wait before a whole burst is owed.
 */
export class RequestLanes {
  readonly #clock: Clock
  readonly #bucket: TokenBucket
  /** Insertion order is the order of service. */
  readonly #waiting: Readonly<Record<Lane, Set<Waiter>>> = {
    together: new Set(),
    urgent: new Set(),
    normal: new Set(),
  }
  #normalUnderWay = 0
  #urgentInRow = 0
  #isPlanned = false

  constructor(rate: Rate, clock: Clock) {
    this.#clock = clock
    // With less than one token at once nothing would ever pass.
    this.#bucket = new TokenBucket({ ...rate, burst: Math.max(1, rate.burst) }, clock)
  }

  /**
   * Runs `request` when it is its turn.
   * @throws the signal's reason, with no token taken, when it aborts before.
   */
  async run<T>(lane: Lane, signal: AbortSignal | undefined, request: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    await this.#turn(lane, signal)
    try {
      return await request()
    } finally {
      if (lane === 'normal') {
        this.#normalUnderWay--
        this.#serve()
      }
    }
  }

  /** Resolves when a token was taken for the caller. */
  #turn(lane: Lane, signal: AbortSignal | undefined): Promise<void> {
    if (lane === 'together' && this.#bucket.tryBorrow()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const line = this.#waiting[lane]
      const onAbort = () => {
        line.delete(waiter)
        reject(signal?.reason as Error)
      }
      const waiter: Waiter = {
        go: () => {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        },
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      line.add(waiter)
      this.#serve()
    })
  }

  #serve(): void {
    if (this.#isPlanned) return
    for (let lane = this.#nextLane(); lane !== undefined; lane = this.#nextLane()) {
      if (!this.#bucket.tryTake()) {
        this.#serveLater()
        return
      }
      if (lane === 'normal') this.#normalUnderWay++
      this.#urgentInRow = lane === 'normal' ? 0 : this.#urgentInRow + 1
      for (const waiter of this.#waiting[lane]) {
        this.#waiting[lane].delete(waiter)
        waiter.go()
        break
      }
    }
  }

  #serveLater(): void {
    this.#isPlanned = true
    this.#clock.after(this.#bucket.dueMs(), () => {
      this.#isPlanned = false
      this.#serve()
    })
  }

  #nextLane(): Lane | undefined {
    const { together, urgent, normal } = this.#waiting
    const isNormalNext = normal.size > 0 && this.#normalUnderWay < normalAtOnce
    if (isNormalNext && this.#urgentInRow >= urgentTokensPerNormal) return 'normal'
    if (together.size > 0) return 'together'
    if (urgent.size > 0) return 'urgent'
    return isNormalNext ? 'normal' : undefined
  }
}
