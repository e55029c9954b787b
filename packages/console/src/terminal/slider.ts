/** The time of a recording, and the keys that move it. */
import { rfc3339 } from '@tenon/runtime'
import type { Timeline } from '../sources/timeline.ts'
import { barText } from './amounts.ts'

/** Parts of the whole that keys move it by. */
const moves: ReadonlyMap<string, number> = new Map([
  ['[', -0.01],
  [']', 0.01],
  ['{', -0.1],
  ['}', 0.1],
])
/** What a tenth of a second is while it plays: the whole takes half a minute. */
const playedPart = 1 / 300
const barWidth = 20
const hourMs = 3_600_000

export class Slider {
  readonly #timeline: Timeline
  #isPlaying = false

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  /** @returns whether the key is one of the slider. */
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

  /** Time goes on while it plays. @returns whether it is another one. */
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
