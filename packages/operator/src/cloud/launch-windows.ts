/** How many launches of one offering may be under way at once, so that a shortage shows in a few of them. */
import type { Clock } from '@tenon/runtime'

const firstWindow = 4
/** A success so long ago says little about what there is now. */
const staleMs = 60_000
/** A cloud that refuses does so within this time; one that takes longer is probably at work. */
const patienceMs = 5_000

interface Window {
  limit: number
  underWay: number
  usedMs: number
  readonly waiting: Set<() => void>
}

/** Windows by key: each success makes room for one more launch, a refusal takes all room back. */
export class LaunchWindows {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes a place if there is one. */
  enter(key: string): boolean {
    const window = this.#window(key)
    if (window.underWay >= window.limit) return false
    this.force(key)
    return true
  }

  /** Takes a place, whether there is one or not. */
  force(key: string): void {
    const window = this.#window(key)
    window.underWay++
    window.usedMs = this.#clock.monotonic()
  }

  /**
   * Waits for a place, a refusal, or until it makes no sense to wait any longer.
   * @returns whether there is news; false = out of patience.
   */
  async news(key: string, signal: AbortSignal | undefined): Promise<boolean> {
    const { waiting } = this.#window(key)
    const stop = new AbortController()
    const stopping = signal === undefined ? stop.signal : AbortSignal.any([stop.signal, signal])
    let isNews = false
    const tell = () => {
      isNews = true
      stop.abort()
    }
    waiting.add(tell)
    try {
      await this.#clock.sleep(patienceMs, stopping)
    } catch (error) {
      if (!isNews) throw error
    } finally {
      waiting.delete(tell)
    }
    return isNews
  }

  /** Gives a place back. */
  leave(key: string, outcome: 'launched' | 'refused' | 'other'): void {
    const window = this.#window(key)
    window.underWay--
    if (outcome === 'launched') window.limit++
    if (outcome === 'refused') window.limit = firstWindow
    const free = outcome === 'refused' ? window.waiting.size : window.limit - window.underWay
    const told = [...window.waiting].slice(0, Math.max(0, free))
    for (const tell of told) {
      window.waiting.delete(tell)
      tell()
    }
  }

  #window(key: string): Window {
    const now = this.#clock.monotonic()
    let window = this.#windows.get(key)
    const isStale = window !== undefined && now - window.usedMs > staleMs && window.underWay === 0
    if (window === undefined || (isStale && window.waiting.size === 0)) {
      window = { limit: firstWindow, underWay: 0, usedMs: now, waiting: new Set() }
      this.#windows.set(key, window)
    }
    return window
  }
}
