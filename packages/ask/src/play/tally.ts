/** Counts what happens to pods during a play. */

const dayMs = 86_400_000

/** In milliseconds; fields are absent if nothing happened. */
export interface Durations {
  readonly count: number
  readonly medianMs?: number
  readonly p99Ms?: number
  readonly maxMs?: number
}

/** Counts pods that were created, ended and became ready. */
export class Tally {
  readonly #startMs: number
  #pods = 0
  #mostPods = 0
  #podsSeen = 0
  #podMs = 0
  #atMs: number
  #evictions = 0
  #rejections = 0
  readonly #pendingMs: number[] = []

  constructor(startMs: number) {
    this.#startMs = startMs
    this.#atMs = startMs
  }

  podAdded(nowMs: number): void {
    this.advance(nowMs)
    this.#pods++
    this.#podsSeen++
    this.#mostPods = Math.max(this.#mostPods, this.#pods)
  }

  podRemoved(nowMs: number): void {
    this.advance(nowMs)
    this.#pods--
  }

  /** @param pendingMs from the pod's creation until it was Ready. */
  podReady(pendingMs: number): void {
    this.#pendingMs.push(pendingMs)
  }

  podEvicted(): void {
    this.#evictions++
  }

  /** The kubelet rejected a bound pod. */
  podRejected(): void {
    this.#rejections++
  }

  advance(nowMs: number): void {
    this.#podMs += this.#pods * (nowMs - this.#atMs)
    this.#atMs = nowMs
  }

  get elapsedMs(): number {
    return this.#atMs - this.#startMs
  }

  get podDays(): number {
    return this.#podMs / dayMs
  }

  get podsSeen(): number {
    return this.#podsSeen
  }

  get mostPods(): number {
    return this.#mostPods
  }

  get evictions(): number {
    return this.#evictions
  }

  get rejections(): number {
    return this.#rejections
  }

  pending(): Durations {
    return durationsOf(this.#pendingMs)
  }
}

/** Percentiles are observed values: the smallest that is no less than the given share of all values. */
function durationsOf(values: readonly number[]): Durations {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number | undefined => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  const [medianMs, p99Ms, maxMs] = [at(0.5), at(0.99), sorted.at(-1)]
  if (medianMs === undefined || p99Ms === undefined || maxMs === undefined) return { count: 0 }
  return { count: sorted.length, medianMs, p99Ms, maxMs }
}
