/** Nodes whose commands came to nothing are left alone for a while, for longer each time. */
import type { Clock } from '@tenon/runtime'

const restMs = 60_000
const longestRestMs = 16 * restMs
/** What happened so long ago does not count any more. */
const memoryMs = 60 * restMs

interface Retreat {
  readonly count: number
  readonly untilMs: number
}

/** Remembers by provider ID; the first time a command comes to nothing its nodes may be tried again at once. */
export class Retreats {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #retreats = new Map<string, Retreat>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  note(providerIDs: readonly string[]): void {
    const now = this.#clock.monotonic()
    for (const [id, { untilMs }] of this.#retreats) if (now - untilMs >= memoryMs) this.#retreats.delete(id)
    for (const id of providerIDs) {
      const count = (this.#retreats.get(id)?.count ?? 0) + 1
      const waitMs = count === 1 ? 0 : Math.min(longestRestMs, restMs * 2 ** (count - 2))
      this.#retreats.set(id, { count, untilMs: now + waitMs })
    }
  }

  isResting(providerID: string): boolean {
    return this.#clock.monotonic() < (this.#retreats.get(providerID)?.untilMs ?? 0)
  }

  forget(providerIDs: readonly string[]): void {
    for (const id of providerIDs) this.#retreats.delete(id)
  }
}
