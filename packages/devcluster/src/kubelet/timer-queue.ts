import type { Clock } from '@tenon/runtime'
import { Heap } from '../scheduler/queue/heap.ts'

interface Entry {
  readonly at: number
  readonly order: number
  readonly callback: () => void
  cancelled: boolean
}

const tickMs = 20
const sliceMs = 10

/**
 * Many timers with one timer of the clock. Due times are rounded up to ticks, so that work of many kubelets is done in
 * batches; a long batch yields to the event loop.
 */
export class TimerQueue {
  readonly #clock: Clock
  readonly #entries = new Heap<Entry>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order))
  #order = 0
  #armedFor = Number.POSITIVE_INFINITY
  #disarm: (() => void) | undefined
  #stopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Runs `callback` once after about `ms` milliseconds; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void {
    const due = this.#clock.monotonic() + Math.max(0, ms)
    const entry: Entry = {
      at: Math.ceil(due / tickMs) * tickMs,
      order: this.#order++,
      callback,
      cancelled: false,
    }
    this.#entries.push(entry)
    this.#arm()
    return () => {
      entry.cancelled = true
    }
  }

  stop(): void {
    this.#stopped = true
    this.#disarm?.()
  }

  #arm(): void {
    const next = this.#entries.peek()
    if (this.#stopped || next === undefined || next.at >= this.#armedFor) return
    this.#disarm?.()
    this.#armedFor = next.at
    this.#disarm = this.#clock.after(next.at - this.#clock.monotonic(), () => this.#run())
  }

  #run(): void {
    this.#armedFor = Number.POSITIVE_INFINITY
    const start = this.#clock.monotonic()
    for (let next = this.#entries.peek(); next !== undefined; next = this.#entries.peek()) {
      const now = this.#clock.monotonic()
      if (next.at > now || now - start >= sliceMs || this.#stopped) break
      this.#entries.pop()
      if (!next.cancelled) next.callback()
    }
    this.#arm()
  }
}
