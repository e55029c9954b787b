/** When a followed collection is listed although the watch works (reports-2.md 2). */
import { type Clock, integerBetween, type Random } from '@tenon/runtime'
import { Backoff } from '../backoff.ts'

/**
 * Seconds until a list that checks the content, after a first list (which could not be compared) or an unconfirmed
 * deletion.
 */
const checkAfterSeconds = { low: 300, high: 540 }
/** Seconds until the next list otherwise. */
const relistAfterSeconds = { low: 2 * 3600, high: 6 * 3600 }
/** After so long without a request, a request does not count as a repetition. */
const quietMs = 600_000
/** Waits for more requests, as evidence comes in bursts. */
const gatherMs = 1000

export class Relists {
  readonly #clock: Clock
  readonly #random: Random
  readonly #backoff: Backoff
  readonly #onDue: () => void
  #isDue = false
  #isAsked = false
  /** Whether the next list comes checkAfterSeconds although nobody requested it. */
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

  /**
   * Requests a list because the content may be wrong. Requests until the list share it; later ones get growing pauses.
   */
  ask(): void {
    if (this.#isAsked || this.#isDue) return
    const now = this.#clock.monotonic()
    if (now - this.#askedAt > quietMs) this.#backoff.reset()
    this.#isAsked = true
    this.#askedAt = now
    this.#schedule(Math.max(gatherMs, this.#listedAt + this.#backoff.next() - now))
  }

  /** Requests a check of content that may be wrong. One list checkAfterSeconds covers all checks. */
  check(): void {
    if (this.#isAsked || this.#isDue || this.#isChecking) return
    this.#isChecking = true
    this.#schedule(1000 * integerBetween(this.#random, checkAfterSeconds.low, checkAfterSeconds.high))
  }

  /** The next request to the server will be a list. */
  now(): void {
    this.#cancel()
    this.#isDue = true
  }

  /** Call when a list begins. Later requests may be about newer content. */
  begin(): void {
    this.stop()
    this.#isDue = false
    this.#isAsked = false
    this.#isChecking = false
    this.#listedAt = this.#clock.monotonic()
  }

  /**
   * @param isFirst whether it was the first list, or the first after a gap, so that there was nothing to compare it
   * with.
   */
  listed(isFirst: boolean): void {
    this.#listedAt = this.#clock.monotonic()
    if (this.#isAsked || this.#isDue || this.#isChecking) return
    this.#isChecking = isFirst
    const { low, high } = isFirst ? checkAfterSeconds : relistAfterSeconds
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
