/** Client-side rate limit: one token bucket with several queues. */
import type { Clock } from '@tenon/runtime'
import type { Lane } from '../contract.ts'
import { type Rate, TokenBucket } from '../token-bucket.ts'

/**
 * Tokens for urgent requests per token for normal ones while both wait. Normal requests keep a fifth of the rate, so
 * that a flood of urgent ones slows them down but never stops them.
 */
const urgentTokensPerNormal = 4

/**
 * Maximum normal requests in progress. More would only slow each other down on a slow server, and delay urgent
 * requests.
 */
const normalAtOnce = 64

interface Waiter {
  readonly go: () => void
}

/**
 * Hands out the tokens of one bucket: first come, first served within a lane; `together` before `urgent` before
 * `normal`. Requests of `together` may borrow up to one burst of tokens.
 */
export class RequestLanes {
  readonly #clock: Clock
  readonly #bucket: TokenBucket
  /** In insertion order, which is the order of service. */
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
    // With a burst below one token, nothing would ever pass.
    this.#bucket = new TokenBucket({ ...rate, burst: Math.max(1, rate.burst) }, clock)
  }

  /**
   * Runs `request` when it is its turn.
   * @throws the signal's reason if it aborts first; no token is used then.
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

  /** Resolves when the caller has a token. */
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
