/** Records Events of controllers in large worlds without the API server: they would be half of all requests. */
import type { EventInput, EventRecorder } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'

const keptLines = 200
/** Repeated Events within this time are dropped. */
const repeatMs = 10 * 60_000

/** The newest Events as lines. */
export class EventNotes implements EventRecorder {
  readonly #clock: Pick<Clock, 'now'>
  #lines: string[] = []
  /** When a text was last recorded. */
  readonly #said = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  record({ object, reason, message }: EventInput): void {
    const now = this.#clock.now()
    const text = `${reason} ${object.kind}/${object.metadata.name}: ${message}`
    if (now - (this.#said.get(text) ?? Number.NEGATIVE_INFINITY) < repeatMs) return
    this.#said.delete(text)
    this.#said.set(text, now)
    if (this.#said.size > 20 * keptLines) this.#said.delete(this.#said.keys().next().value ?? '')
    this.#lines.push(`${rfc3339(now)} ${text}`)
    if (this.#lines.length > 2 * keptLines) this.#lines = this.#lines.slice(-keptLines)
  }

  /** Oldest first. */
  get lines(): readonly string[] {
    return this.#lines.slice(-keptLines)
  }
}
