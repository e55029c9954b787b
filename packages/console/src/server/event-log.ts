/** Event streams: the whole picture once, then changes with ids, so that an interrupted stream can resume. */
import { eventLoopTurns } from '@tenon/runtime'

/** Server-sent events of one moment. */
interface Batch {
  readonly id: number
  readonly text: string
}

/** Limits of the changes that are kept for interrupted streams: characters and number. */
const mostCharacters = 8 * 1024 * 1024
const mostBatches = 5000

/** Numbers changes and keeps the most recent ones. */
export class EventLog {
  /** Distinguishes the ids of this process from those of earlier ones. */
  readonly #run: string
  readonly #batches: Batch[] = []
  readonly #wakers = new Set<() => void>()
  #characters = 0
  #lastId = 0

  constructor(run: string) {
    this.#run = run
  }

  /** Sends changes to all streams. */
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
   * Events after `lastEventId`, preceded by the whole picture if that id is unknown.
   * @param picture the parts of the picture, each of them JSON; it includes all changes that were added until
   * it resolves. The parts are sent in several turns, and the last one carries the id: a client that has
   * received it has all of them.
   * @param idle resolves when a keep-alive is due.
   */
  async *follow(
    lastEventId: string | undefined,
    picture: () => Promise<Iterable<string>>,
    idle: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): AsyncGenerator<string, void, undefined> {
    yield 'retry: 1000\n\n'
    let lastSent = this.#known(lastEventId)
    while (!signal.aborted) {
      const first = this.#batches[0]?.id ?? this.#lastId + 1
      if (lastSent === undefined || lastSent < first - 1) {
        // Taking the picture may add changes.
        const parts = await picture()
        lastSent = this.#lastId
        let last = 'null'
        for (const part of parts) {
          if (last !== 'null') yield `event: part\ndata: ${last}\n\n`
          last = part
          await eventLoopTurns.next()
        }
        yield `event: picture\nid: ${this.#run}.${lastSent}\ndata: ${last}\n\n`
      } else if (lastSent < this.#lastId) {
        const text = this.#batches
          .slice(lastSent + 1 - first)
          .map((batch) => batch.text)
          .join('')
        lastSent = this.#lastId
        yield text
      } else if (!(await this.#changed(idle, signal))) yield ': still here\n\n'
    }
  }

  /** @returns undefined for an id of another process, or an invalid one. */
  #known(eventId: string | undefined): number | undefined {
    const [run, id = ''] = (eventId ?? '').split('.')
    return run === this.#run && /^\d+$/.test(id) && Number(id) <= this.#lastId ? Number(id) : undefined
  }

  /** @returns whether there are new changes; false if a keep-alive is due. */
  async #changed(idle: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
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
