/** When a collection that is followed is listed all the same (reports-2.md 2). */
import { type Clock, integerBetween, type Random } from '@tenon/runtime'
import { Backoff } from '../backoff.ts'

/** Seconds after a list behind which nothing was known, or a deletion without a witness, so that a wrong one is found out. */
const soon = { low: 300, high: 540 }
/** Seconds after any other. */
const seldom = { low: 2 * 3600, high: 6 * 3600 }
/** What is asked for after so long is no repetition of what was asked for before. */
const quietMs = 600_000
/** Evidence comes in rows. */
const gatherMs = 1000

export class Relists {
  readonly #clock: Clock
  readonly #random: Random
  readonly #backoff: Backoff
  readonly #onDue: () => void
  #isDue = false
  #isAsked = false
  /** Whether the next list comes soon although nobody asked for it. */
  #isChecking = false
  #askedAt = 0
  #listedAt = 0
  #cancel: () => void = () => undefined

  constructor(clock: Clock, random: Random, onDue: () => void) {
    this.#clock = clock
    this.#random = random
    this.#backoff = new Backoff({ baseMs: 5_000, capMs: 60_000 }, random)
    this.#onDue = onDue
  }

  get isDue(): boolean {
    return this.#isDue
  }

  /** The content may be wrong: one list for all who say so until it is taken, the next ones with growing pauses. */
  ask(): void {
    if (this.#isAsked || this.#isDue) return
    const now = this.#clock.monotonic()
    if (now - this.#askedAt > quietMs) this.#backoff.reset()
    this.#isAsked = true
    this.#askedAt = now
    this.#schedule(Math.max(gatherMs, this.#listedAt + this.#backoff.next() - now))
  }

  /** Something was believed that may be wrong: the next list comes soon, and is one for all of it. */
  check(): void {
    if (this.#isAsked || this.#isDue || this.#isChecking) return
    this.#isChecking = true
    this.#schedule(1000 * integerBetween(this.#random, soon.low, soon.high))
  }

  /** The next look at the collection is a list. */
  now(): void {
    this.#cancel()
    this.#isDue = true
  }

  /** A list begins: what is asked for from here on may be newer than what it shows. */
  begin(): void {
    this.stop()
    this.#isDue = false
    this.#isAsked = false
    this.#isChecking = false
    this.#listedAt = this.#clock.monotonic()
  }

  /** @param isFirst it came after a gap, or was the first: there was nothing to compare it with. */
  listed(isFirst: boolean): void {
    this.#listedAt = this.#clock.monotonic()
    if (this.#isAsked || this.#isDue || this.#isChecking) return
    this.#isChecking = isFirst
    const { low, high } = isFirst ? soon : seldom
    this.#schedule(1000 * integerBetween(this.#random, low, high))
  }

  stop(): void {
    this.#cancel()
  }

  #schedule(delayMs: number): void {
    this.#cancel()
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#isDue = true
      this.#onDue()
    })
  }
}
