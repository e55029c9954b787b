/** Objects that one response reports as gone, until another response confirms it (reports-2.md 2). */
import type { Clock } from '@tenon/runtime'

/** The share of a collection that one response may remove. */
const mostAtOnce = 0.2
/** Deletions within this time are one burst. */
const burstMs = 10_000

/**
 * How to treat an unannounced deletion: remove the object; remove it and check by name; or keep it until it was
 * checked.
 */
type Verdict = 'believed' | 'checked' | 'held'

/**
 * Prevents one wrong response from emptying a cache. Lists have no minimum number of losses: they are rare, and
 * repeating one for a small collection is cheap. Deletion events are frequent, so a single one is always trusted.
 */
export class SecondWitness {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Keys that one response reports as gone. */
  #suspects: ReadonlySet<string> = new Set()
  /** Keys of deletion events since then. */
  #vanished = new Set<string>()
  #burst = { sinceMs: 0, count: 0, known: 0 }

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /**
   * A watch reports an object as deleted.
   * @param known the size of the collection.
   * @param isLimit whether the object holds something back, which its absence would allow at once.
   */
  vanished(key: string, known: number, isLimit = false): Verdict {
    if (isLimit) {
      this.#vanished.add(key)
      return 'held'
    }
    const now = this.#clock.monotonic()
    if (this.#burst.count === 0 || now - this.#burst.sinceMs > burstMs)
      this.#burst = { sinceMs: now, count: 0, known }
    this.#burst.count++
    if (this.#burst.count <= mostAtOnce * this.#burst.known) return 'believed'
    if (this.#burst.count === 1) return 'checked'
    this.#vanished.add(key)
    return 'held'
  }

  /**
   * A complete list lacks `lost`, or has older versions of them.
   * @returns whether to trust the list. If not, the next list that agrees is trusted.
   */
  believes(lost: readonly string[], known: number): boolean {
    const isSecond = (key: string) => this.#suspects.has(key) || this.#vanished.has(key)
    const isBelieved = lost.filter((key) => !isSecond(key)).length <= mostAtOnce * known
    this.#suspects = new Set(isBelieved ? [] : lost)
    this.#vanished = new Set()
    return isBelieved
  }
}
