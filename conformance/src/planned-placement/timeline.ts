/** When each step from a decision to running pods happened, and how often. */

/** In seconds since {@link Timeline.start}. */
export interface Span {
  readonly step: string
  readonly count: number
  readonly first: number
  /** When 50 % and 95 % had happened. */
  readonly half: number
  readonly most: number
  readonly last: number
}

/** Records steps with the monotonic clock. */
export class Timeline {
  readonly #now: () => number
  readonly #marks = new Map<string, number[]>()
  #startMs = 0

  /** @param now monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  start(): void {
    this.#marks.clear()
    this.#startMs = this.#now()
  }

  mark(step: string): void {
    const seconds = (this.#now() - this.#startMs) / 1000
    const times = this.#marks.get(step)
    if (times === undefined) this.#marks.set(step, [seconds])
    else times.push(seconds)
  }

  /** Sorted by their beginnings. */
  get spans(): readonly Span[] {
    return Array.from(this.#marks, ([step, times]) => {
      const at = (share: number) => times[Math.ceil(share * times.length) - 1] ?? Number.NaN
      return {
        step,
        count: times.length,
        first: times[0] ?? Number.NaN,
        half: at(0.5),
        most: at(0.95),
        last: at(1),
      }
    }).toSorted((a, b) => a.first - b.first)
  }
}
