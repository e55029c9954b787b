import type { Clock } from '@tenon/runtime'

const firstWindow = 4
/** Successes this long ago say little about the capacity there is now. */
const staleMs = 60_000
/** Clouds refuse within this time; one that takes longer is probably launching. */
const patienceMs = 5_000

interface Window {
  limit: number
  underWay: number
  usedMs: number
  readonly waiting: Set<() => void>
}

/**
 * Limits concurrent launches of an offering, so that only a few fail when it is sold out. Each success allows one more, a refusal
 * resets the limit.
 */
export class LaunchWindows {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @returns false if the window is full. */
  enter(key: string): boolean {
    const window = this.#window(key)
    if (window.underWay >= window.limit) return false
    this.force(key)
    return true
  }

  /** Enters even if the window is full. */
  force(key: string): void {
    const window = this.#window(key)
    window.underWay++
    window.usedMs = this.#clock.monotonic()
  }

  /** Waits for room or a refusal. @returns false after the longest wait. */
  async changed(key: string, signal: AbortSignal | undefined): Promise<boolean> {
    const { waiting } = this.#window(key)
    const stop = new AbortController()
    const stopping = signal === undefined ? stop.signal : AbortSignal.any([stop.signal, signal])
    let hasChanged = false
    const wake = () => {
      hasChanged = true
      stop.abort()
    }
    waiting.add(wake)
    try {
      await this.#clock.sleep(patienceMs, stopping)
    } catch (error) {
      if (!hasChanged) throw error
    } finally {
      waiting.delete(wake)
    }
    return hasChanged
  }

  leave(key: string, outcome: 'launched' | 'refused' | 'other'): void {
    const window = this.#window(key)
    window.underWay--
    if (outcome === 'launched') window.limit++
    if (outcome === 'refused') window.limit = firstWindow
    const free = outcome === 'refused' ? window.waiting.size : window.limit - window.underWay
    const woken = [...window.waiting].slice(0, Math.max(0, free))
    for (const wake of woken) {
      window.waiting.delete(wake)
      wake()
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
