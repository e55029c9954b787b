import type { Clock } from '@tenon/runtime'

/**
 * `fresh` keys were asked for because something happened, `retry` keys come back after a failure.
 * Fresh ones go first, so that many keys that fail forever hold up nothing new.
 */
export type Line = 'fresh' | 'retry'

/** Turns the fresh line gets for each one of the retry line while both wait: neither ever starves. */
const freshTurnsPerRetry = 4

interface Planned {
  readonly at: number
  readonly cancel: () => void
}

/**
 * Keys to work on, first come first served within a line. A key waits at most once, is never handed
 * out twice at the same time, and comes back when it was asked for during its own run; so the queue
 * is bounded by the number of distinct keys.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #onReady: () => void
  /** Insertion order is the order of service; the value is when the key began to wait. */
  readonly #ready: Readonly<Record<Line, Map<string, number>>> = { fresh: new Map(), retry: new Map() }
  /** The value is when the run of a key began. */
  readonly #running = new Map<string, number>()
  readonly #again = new Set<string>()
  readonly #delayed = new Map<string, Planned>()
  #freshInRow = 0
  #isClosed = false

  /** @param onReady called when a key became available. */
  constructor(clock: Clock, onReady: () => void) {
    this.#clock = clock
    this.#onReady = onReady
  }

  /** Keys waiting for their turn now. */
  get waiting(): number {
    return this.#ready.fresh.size + this.#ready.retry.size
  }

  get waitingByLine(): Readonly<Record<Line, number>> {
    return { fresh: this.#ready.fresh.size, retry: this.#ready.retry.size }
  }

  get running(): number {
    return this.#running.size
  }

  /** When the run of each key that was taken and has not finished began. */
  get runningSinceMs(): Iterable<number> {
    return this.#running.values()
  }

  /** Puts a key in line; one that waits as a retry moves over when it is asked for afresh. */
  add(key: string, line: Line = 'fresh'): void {
    const { fresh, retry } = this.#ready
    if (this.#isClosed || fresh.has(key) || this.#again.has(key)) return
    if (this.#running.has(key)) {
      this.#again.add(key)
      return
    }
    const since = retry.get(key)
    if (since !== undefined && line === 'retry') return
    retry.delete(key)
    this.#ready[line].set(key, since ?? this.#clock.monotonic())
    if (since === undefined) this.#onReady()
  }

  /** Puts a key in line after `ms`; of several delays the one that ends first counts. */
  addAfter(key: string, ms: number, line: Line = 'fresh'): void {
    if (this.#isClosed) return
    const at = this.#clock.monotonic() + ms
    const planned = this.#delayed.get(key)
    if (planned !== undefined) {
      if (planned.at <= at) return
      planned.cancel()
    }
    const cancel = this.#clock.after(ms, () => {
      this.#delayed.delete(key)
      this.add(key, line)
    })
    this.#delayed.set(key, { at, cancel })
  }

  /** Takes the next key and how long it waited. */
  take(): { readonly key: string; readonly waitedMs: number } | undefined {
    const line = this.#nextLine()
    for (const [key, since] of this.#ready[line]) {
      this.#freshInRow = line === 'fresh' ? this.#freshInRow + 1 : 0
      this.#ready[line].delete(key)
      const now = this.#clock.monotonic()
      this.#running.set(key, now)
      return { key, waitedMs: now - since }
    }
    return undefined
  }

  /** The run of a key has ended. */
  finish(key: string): void {
    this.#running.delete(key)
    if (this.#again.delete(key)) this.add(key)
  }

  /** Forgets everything that waits and takes nothing more. */
  close(): void {
    this.#isClosed = true
    this.#ready.fresh.clear()
    this.#ready.retry.clear()
    this.#again.clear()
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
  }

  #nextLine(): Line {
    const { fresh, retry } = this.#ready
    if (fresh.size === 0) return 'retry'
    return retry.size > 0 && this.#freshInRow >= freshTurnsPerRetry ? 'retry' : 'fresh'
  }
}
