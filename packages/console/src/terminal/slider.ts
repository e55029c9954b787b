/** The time slider of a recording, and its keys. */
import { rfc3339 } from '@tenon/runtime'
import type { Timeline } from '../sources/timeline.ts'
import { barText } from './amounts.ts'

/** Fractions of the recording that keys move it by. */
const moves: ReadonlyMap<string, number> = new Map([
  ['[', -0.01],
  [']', 0.01],
  ['{', -0.1],
  ['}', 0.1],
])
/** Progress per tenth of a second while it plays: the whole recording takes half a minute. */
const playedPart = 1 / 300
const barWidth = 20
const hourMs = 3_600_000

export class Slider {
  readonly #timeline: Timeline
  #isPlaying = false

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  /** @returns whether the slider handles the key. */
  press(key: string): boolean {
    const move = moves.get(key)
    if (move !== undefined) {
      this.#isPlaying = false
      this.#move(move)
      return true
    }
    if (key !== ' ') return false
    if (this.#isAtEnd && !this.#isPlaying) this.#timeline.seek(this.#timeline.startMs)
    this.#isPlaying = !this.#isPlaying
    return true
  }

  /**
   * Moves the time while it plays.
   * @returns whether it has changed.
   */
  tick(): boolean {
    if (!this.#isPlaying) return false
    this.#move(playedPart)
    if (this.#isAtEnd) this.#isPlaying = false
    return true
  }

  /** One line. */
  text(): string {
    const { atMs, endMs, gap, startMs } = this.#timeline
    const length = endMs - startMs
    const bar = barText(length === 0 ? 1 : (atMs - startMs) / length, barWidth)
    const hours = `${((atMs - startMs) / hourMs).toFixed(1)} of ${(length / hourMs).toFixed(1)} h`
    const known = gap === undefined ? '' : ` · nothing is known of this time: ${gap}`
    return `${rfc3339(atMs)} ${bar} ${hours} · [ ] move, space ${this.#isPlaying ? 'stops' : 'plays'}${known}`
  }

  get #isAtEnd(): boolean {
    return this.#timeline.atMs >= this.#timeline.endMs
  }

  #move(part: number): void {
    const { atMs, endMs, startMs } = this.#timeline
    this.#timeline.seek(atMs + part * (endMs - startMs))
  }
}
