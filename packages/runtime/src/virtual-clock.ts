import { nextTick } from 'node:process'
import { type Clock, sleepOn } from './clock.ts'

/** With `turns` 0, this many timers share one turn of the event loop. */
const mostTimersInTurn = 16

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
  cancelled: boolean
}

/**
 * A clock that only moves when told to. Timers due at the same instant run in the order in which they were set,
 * and all microtasks settle between two timers, so a run is reproducible.
 */
export class VirtualClock implements Clock {
  #now: number
  #order = 0
  readonly #start: number
  readonly #timers: Timer[] = []
  readonly #turns: number
  #timersInTurn = 0

  /**
   * @param startMs Unix milliseconds at which the clock starts.
   * @param turns turns of the event loop between two timers; each costs about as much as a small timer. 0 is
   * enough if the code only awaits promises; then a turn is taken only after every few timers, for other users
   * of the event loop.
   */
  constructor(startMs: number = Date.UTC(2026, 0, 1), turns: number = 4) {
    this.#now = startMs
    this.#start = startMs
    this.#turns = turns
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now - this.#start
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal)
  }

  after(ms: number, callback: () => void): () => void {
    // Whole milliseconds: a fraction is lost in the precision of a Unix time, and time would stand still.
    const timer: Timer = {
      at: this.#now + Math.ceil(Math.max(0, ms)),
      order: this.#order++,
      callback,
      cancelled: false,
    }
    this.#push(timer)
    return () => {
      timer.cancelled = true
    }
  }

  /** Moves time forward by `ms` and runs every timer on the way, in order. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await this.#settle()
    for (;;) {
      const next = this.#peek()
      if (next === undefined || next.at > end) break
      this.#pop()
      this.#now = next.at
      next.callback()
      await this.#settle()
    }
    this.#now = end
  }

  /**
   * Moves from timer to timer until `done()` holds, the limit is reached or no timer is left.
   * @returns whether `done()` held within `limitMs` of virtual time.
   */
  async advanceUntil(done: () => boolean, limitMs: number): Promise<boolean> {
    const end = this.#now + limitMs
    await this.#settle()
    while (!done()) {
      const next = this.#peek()
      if (next === undefined) return false
      if (next.at > end) {
        this.#now = end
        return false
      }
      this.#pop()
      this.#now = next.at
      next.callback()
      await this.#settle()
    }
    return true
  }

  /** Runs every promise continuation that is ready, including work bridged through the event loop. */
  #settle(): Promise<void> {
    if (this.#turns === 1) return nextTurn()
    if (this.#turns > 1) return manyTurns(this.#turns)
    if (++this.#timersInTurn < mostTimersInTurn) return promisesSettled()
    this.#timersInTurn = 0
    return nextTurn()
  }

  #peek(): Timer | undefined {
    while (this.#timers[0]?.cancelled) this.#pop()
    return this.#timers[0]
  }

  #push(timer: Timer): void {
    const heap = this.#timers
    let index = heap.push(timer) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(timer, heap[parent] as Timer)) break
      heap[index] = heap[parent] as Timer
      index = parent
    }
    heap[index] = timer
  }

  #pop(): void {
    const heap = this.#timers
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child++
      if (!isBefore(heap[child] as Timer, last)) break
      heap[index] = heap[child] as Timer
      index = child
    }
    heap[index] = last
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

async function manyTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn()
}

/** `nextTick` callbacks run when the microtask queue is empty, if they are scheduled from a microtask. */
function promisesSettled(): Promise<void> {
  return new Promise((resolve) => {
    queueMicrotask(() => {
      nextTick(resolve)
    })
  })
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
