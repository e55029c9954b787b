import type { Clock } from '@tenon/runtime'

/**
 * Collects triggers into a batch: it closes when nothing new came for the idle time, or at the
 * latest after the longest time (scheduling.md 3).
 */
export class Batcher {
  readonly #clock: Clock
  readonly #maxMs: number
  readonly #idleMs: number
  readonly #elements = new Set<string>()
  #signal: (() => void) | undefined

  constructor(clock: Clock, maxMs: number, idleMs: number) {
    this.#clock = clock
    this.#maxMs = maxMs
    this.#idleMs = idleMs
  }

  /** Adds an element; one that is in the batch already does not extend the window. */
  trigger(id: string): void {
    if (this.#elements.has(id)) return
    this.#elements.add(id)
    this.#signal?.()
  }

  /** Resolves when a batch is complete; its elements may be triggered again from then on. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.#elements.size === 0) await this.#nextTrigger(Number.POSITIVE_INFINITY, signal)
    const deadline = this.#clock.monotonic() + this.#maxMs
    for (;;) {
      const left = deadline - this.#clock.monotonic()
      if (left <= 0) break
      if (!(await this.#nextTrigger(Math.min(left, this.#idleMs), signal))) break
    }
    this.#elements.clear()
  }

  /** @returns whether a trigger came before `ms` had passed. */
  #nextTrigger(ms: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const finish = (end: () => void) => {
        this.#signal = undefined
        cancel?.()
        signal.removeEventListener('abort', onAbort)
        end()
      }
      const onAbort = () => {
        finish(() => {
          reject(signal.reason as Error)
        })
      }
      if (signal.aborted) {
        reject(signal.reason as Error)
        return
      }
      const cancel = Number.isFinite(ms)
        ? this.#clock.after(ms, () => {
            finish(() => {
              resolve(false)
            })
          })
        : undefined
      this.#signal = () => {
        finish(() => {
          resolve(true)
        })
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }
}
