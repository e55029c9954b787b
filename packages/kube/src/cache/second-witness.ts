/** What one answer says is gone, until another bears it out (reports-2.md 2). */
import type { Clock } from '@tenon/runtime'

/** So much of a collection may be gone at the word of one answer. */
const mostAtOnce = 0.2
/** Deletions within so long of each other are one burst. */
const burstMs = 10_000

/** What is made of a deletion that nothing announced: the object goes, goes and is looked for, or stays till it was looked for. */
type Verdict = 'believed' | 'checked' | 'held'

/**
 * Keeps one wrong answer from emptying a cache. A list has no least number of losses: it is taken after a gap, which is
 * rare, and to ask again costs little where there is little. Deletions by events are daily business, hence a single one is
 * believed, whatever its share.
 */
export class SecondWitness {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Keys of what one answer says is gone. */
  #suspects: ReadonlySet<string> = new Set()
  /** Told gone by events since then. */
  #vanished = new Set<string>()
  #burst = { sinceMs: 0, count: 0, known: 0 }

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** A watch says that an object is gone of which `known` there are. */
  vanished(key: string, known: number): Verdict {
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
   * A complete list lacks `lost`, or shows them older than they are known.
   * @returns whether it is to be believed; if not, the next one that agrees is.
   */
  believes(lost: readonly string[], known: number): boolean {
    const isSecond = (key: string) => this.#suspects.has(key) || this.#vanished.has(key)
    const isBelieved = lost.filter((key) => !isSecond(key)).length <= mostAtOnce * known
    this.#suspects = new Set(isBelieved ? [] : lost)
    this.#vanished = new Set()
    return isBelieved
  }
}
