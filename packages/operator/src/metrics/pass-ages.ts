/** Since when work has been waiting for a pass that does all of it, by controller. */
import type { Clock } from '@tenon/runtime'

export class PassAges {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Undefined while nothing waits. */
  readonly #waitingSinceMs = new Map<string, number | undefined>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** There is work, now or already. */
  waiting(controller: string): void {
    this.#waitingSinceMs.set(controller, this.#waitingSinceMs.get(controller) ?? this.#clock.monotonic())
  }

  /** A pass has done all that waited when it began. */
  complete(controller: string): void {
    this.#waitingSinceMs.set(controller, undefined)
  }

  agesMs(): ReadonlyMap<string, number> {
    const now = this.#clock.monotonic()
    return new Map(
      Array.from(this.#waitingSinceMs, ([name, since]) => [name, since === undefined ? 0 : now - since]),
    )
  }
}
