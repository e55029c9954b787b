/** What streams tell: the whole picture once, then changes with ids, so that a cut stream goes on where it was. */
import { eventLoopTurns } from '@tenon/runtime'

/** Server-sent events of one moment. */
interface Batch {
  readonly id: number
  readonly text: string
}

/** Characters of changes that are kept for streams that were cut, and the number of them. */
const mostCharacters = 8 * 1024 * 1024
const mostBatches = 5000

/** Numbers changes and keeps the last ones. */
export class EventLog {
  /** Ids of another run of the command are none of this one. */
  readonly #run: string
  readonly #batches: Batch[] = []
  readonly #wakers = new Set<() => void>()
  #characters = 0
  #lastId = 0

  constructor(run: string) {
    this.#run = run
  }

  /** Tells all streams. */
  add(changes: readonly unknown[]): void {
    const id = ++this.#lastId
    const text = eventText('changes', `${this.#run}.${id}`, changes)
    this.#batches.push({ id, text })
    this.#characters += text.length
    while (this.#characters > mostCharacters || this.#batches.length > mostBatches)
      this.#characters -= this.#batches.shift()?.text.length ?? 0
    for (const wake of this.#wakers) wake()
    this.#wakers.clear()
  }

  /**
   * Events after `lastEventId`; when that is not known any more, the whole picture first.
   * @param picture of the moment when it resolves, with all changes that were added by then: its parts, each of them
   * JSON. They are asked for in several turns, and the last one is told with the id: who has that has all of them.
   * @param idle resolves when nothing was told for so long that a sign of life is due.
   */
  async *follow(
    lastEventId: string | undefined,
    picture: () => Promise<Iterable<string>>,
    idle: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): AsyncGenerator<string, void, undefined> {
    yield 'retry: 1000\n\n'
    let told = this.#known(lastEventId)
    while (!signal.aborted) {
      const first = this.#batches[0]?.id ?? this.#lastId + 1
      if (told === undefined || told < first - 1) {
        // Taking the picture may add what it has seen.
        const parts = await picture()
        told = this.#lastId
        let last = 'null'
        for (const part of parts) {
          if (last !== 'null') yield `event: part\ndata: ${last}\n\n`
          last = part
          await eventLoopTurns.next()
        }
        yield `event: picture\nid: ${this.#run}.${told}\ndata: ${last}\n\n`
      } else if (told < this.#lastId) {
        const text = this.#batches
          .slice(told + 1 - first)
          .map((batch) => batch.text)
          .join('')
        told = this.#lastId
        yield text
      } else if (!(await this.#news(idle, signal))) yield ': still here\n\n'
    }
  }

  /** @returns undefined for an id of another run, or one that was never given. */
  #known(eventId: string | undefined): number | undefined {
    const [run, id = ''] = (eventId ?? '').split('.')
    return run === this.#run && /^\d+$/.test(id) && Number(id) <= this.#lastId ? Number(id) : undefined
  }

  /** @returns whether there is something to tell; false after a while without. */
  async #news(idle: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const over = new AbortController()
    const ended = AbortSignal.any([over.signal, signal])
    let wake: () => void = () => undefined
    const woken = new Promise<true>((resolve) => {
      wake = () => {
        resolve(true)
      }
      this.#wakers.add(wake)
    })
    const waited = idle(ended).then(
      () => false,
      () => true,
    )
    try {
      return await Promise.race([woken, waited])
    } finally {
      this.#wakers.delete(wake)
      over.abort()
    }
  }
}

function eventText(event: string, id: string, data: unknown): string {
  return `event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`
}
