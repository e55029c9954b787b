import type { Clock } from '@tenon/runtime'

/**
 * Keys to work on, first come first served. A key waits at most once, is never handed out twice at
 * the same time, and comes back when it was asked for during its own run; so the queue is bounded
 * by the number of distinct keys.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #onReady: () => void
  /** Insertion order is the order of service; the value is when the key began to wait. */
  readonly #ready = new Map<string, number>()
  readonly #running = new Set<string>()
  readonly #again = new Set<string>()
  readonly #delayed = new Map<string, { readonly at: number; readonly cancel: () => void }>()
  #isClosed = false

  /** @param onReady called when a key became available. */
  constructor(clock: Clock, onReady: () => void) {
    this.#clock = clock
    this.#onReady = onReady
  }

  /** Keys waiting for their turn now. */
  get waiting(): number {
    return this.#ready.size
  }

  get running(): number {
    return this.#running.size
  }

  /** Puts a key in line. Answers whether it was not there yet. */
  add(key: string): boolean {
    if (this.#isClosed || this.#ready.has(key) || this.#again.has(key)) return false
    if (this.#running.has(key)) {
      this.#again.add(key)
      return true
    }
    this.#ready.set(key, this.#clock.monotonic())
    this.#onReady()
    return true
  }

  /** Puts a key in line after `ms`; of several delays the one that ends first counts. */
  addAfter(key: string, ms: number): void {
    if (this.#isClosed) return
    const at = this.#clock.monotonic() + ms
    const planned = this.#delayed.get(key)
    if (planned !== undefined) {
      if (planned.at <= at) return
      planned.cancel()
    }
    const cancel = this.#clock.after(ms, () => {
      this.#delayed.delete(key)
      this.add(key)
    })
    this.#delayed.set(key, { at, cancel })
  }

  /** Takes the next key and how long it waited. */
  take(): { readonly key: string; readonly waitedMs: number } | undefined {
    const next = this.#ready.entries().next()
    if (next.done === true) return undefined
    const [key, since] = next.value
    this.#ready.delete(key)
    this.#running.add(key)
    return { key, waitedMs: this.#clock.monotonic() - since }
  }

  /** The run of a key has ended. */
  finish(key: string): void {
    this.#running.delete(key)
    if (this.#again.delete(key)) this.add(key)
  }

  /** Forgets everything that waits and takes nothing more. */
  close(): void {
    this.#isClosed = true
    this.#ready.clear()
    this.#again.clear()
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
  }
}
