/** Limits concurrent launches of a flavor (clever-cloud.md 2.3). */
import { ProviderError } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'

/** How long launches take turns after a refusal. */
const cautiousMs = 10 * 60_000

interface Line {
  /** When the flavor was last refused. */
  refusedAtMs: number
  /** Settles when the last launch in the queue has ended. */
  last: Promise<void>
}

/**
 * The platform checks the quota for NodeGroups that arrive together, and refuses them together. So launches of a flavor
 * that was recently refused for quota take turns, each until the platform has responded; others run concurrently.
 */
export class Turns {
  readonly #clock: Clock
  readonly #lines = new Map<string, Line>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The quota of a flavor is used up. */
  refused(flavor: string): void {
    const refusedAtMs = this.#clock.monotonic()
    const line = this.#lines.get(flavor)
    if (line === undefined) this.#lines.set(flavor, { refusedAtMs, last: Promise.resolve() })
    else line.refusedAtMs = refusedAtMs
  }

  /**
   * Runs `work` when it is its turn.
   * @throws ProviderError if another launch of the flavor was refused meanwhile; nothing was requested.
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
