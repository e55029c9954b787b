/** How many NodeGroups are asked for at once (clever-cloud.md 2.3). */
import { ProviderError } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'

/** How long a refusal makes cautious. */
const cautiousMs = 10 * 60_000

interface Line {
  /** When the flavor was refused last. */
  refusedAtMs: number
  /** Ends with the launch that has the turn, or the last one that waits for it. */
  last: Promise<void>
}

/**
 * The platform counts NodeGroups that come together as one, and refuses them together. Launches of a flavor whose
 * quota was used up lately therefore take turns, each until the platform has answered; others go side by side.
 */
export class Turns {
  readonly #clock: Clock
  readonly #lines = new Map<string, Line>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The quota of a flavor was found used up. */
  refused(flavor: string): void {
    const refusedAtMs = this.#clock.monotonic()
    const line = this.#lines.get(flavor)
    if (line === undefined) this.#lines.set(flavor, { refusedAtMs, last: Promise.resolve() })
    else line.refusedAtMs = refusedAtMs
  }

  /**
   * Does `work` once it is its turn.
   * @throws ProviderError when the flavor was refused to somebody while this launch waited; nothing was asked for.
   */
  async take<T>(flavor: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const line = this.#lines.get(flavor)
    const startMs = this.#clock.monotonic()
    if (line === undefined || startMs - line.refusedAtMs >= cautiousMs) {
      this.#lines.delete(flavor)
      return await work()
    }
    const before = line.last
    const turn = Promise.withResolvers<void>()
    line.last = turn.promise
    try {
      await before
      signal?.throwIfAborted()
      if (line.refusedAtMs > startMs)
        throw new ProviderError(
          'insufficientCapacity',
          `flavor ${flavor} was just rejected for another launch`,
        )
      return await work()
    } finally {
      turn.resolve()
    }
  }
}
