import type { Clock } from '@tenon/runtime'

/**
 * `fresh` keys were requested by an event, `retry` keys come back after a failure. Fresh ones go first, so that keys
 * that always fail delay no others.
 */
export type Line = 'fresh' | 'retry'

/** Turns of fresh keys per turn of a retry while both wait, so that neither starves. */
const freshTurnsPerRetry = 4

interface Planned {
  readonly at: number
  readonly cancel: () => void
}

/**
 * Keys to reconcile, first come, first served within a line. A key waits at most once, is never handed out twice at the
 * same time, and comes back if it was requested during its own run. So the number of distinct keys bounds the queue.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #onReady: () => void
  /** In insertion order, which is the order of service. The value is when the key began to wait. */
  readonly #ready: Readonly<Record<Line, Map<string, number>>> = { fresh: new Map(), retry: new Map() }
  /** The value is when the run began. */
  readonly #running = new Map<string, number>()
  readonly #again = new Set<string>()
  readonly #delayed = new Map<string, Planned>()
  #freshInRow = 0
  #isClosed = false

  /** @param onReady called when a key becomes available. */
  constructor(clock: Clock, onReady: () => void) {
    this.#clock = clock
    this.#onReady = onReady
  }

  /** Number of waiting keys. */
  get waiting(): number {
    return this.#ready.fresh.size + this.#ready.retry.size
  }

  get waitingByLine(): Readonly<Record<Line, number>> {
    return { fresh: this.#ready.fresh.size, retry: this.#ready.retry.size }
  }

  get running(): number {
    return this.#running.size
  }

  /** Start of each run that has not finished. */
  get runningSinceMs(): Iterable<number> {
    return this.#running.values()
  }

  /** Enqueues a key; a waiting retry becomes fresh if it is requested as fresh. */
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

  /** Enqueues a key after `ms`; of several delays the earliest end applies. */
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

  /** Takes the next key. */
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

  finish(key: string): void {
    this.#running.delete(key)
    if (this.#again.delete(key)) this.add(key)
  }

  /** Drops all keys and accepts no more. */
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
