/** Follows what the leading controller tells, for the viewer and the page (console.md 1). */
import type { TakenCatalogues } from '@tenon/ask'
import type { SourceEvent } from '@tenon/console'
import { type Clock, eventLoopTurns, messageOf, readText } from '@tenon/runtime'
import { type ControllerPages, followedJournal, journalOf, type PageValues } from './controller-pages.ts'

interface ControllerOptions {
  readonly clock: Clock
  /** Finds the controller; a sentence when there is none. Who finds none tells prices from elsewhere. */
  readonly reach: (signal: AbortSignal) => Promise<ControllerPages | string>
  readonly tell: (event: SourceEvent) => void
}

const pollMs = 5000
/** What is for sale is read again when what launches avoid has changed, and after so long: prices change, too. */
const catalogueMs = 300_000
const againMs = 10_000

/** Follows the controller until `signal` aborts, whichever leads. */
export async function followController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { clock, reach, tell } = options
  while (!signal.aborted) {
    const found = await reach(signal).catch(messageOf)
    if (signal.aborted) return
    if (typeof found === 'string') {
      for (const what of ['journal', 'decisions']) tell({ kind: 'absent', what, why: found })
    } else await attended(found, options, signal)
    await clock.sleep(againMs, signal).catch(() => undefined)
  }
}

/** Until one of its pages does not come any more. */
async function attended(
  pages: ControllerPages,
  options: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController()
  const either = AbortSignal.any([signal, ended.signal])
  const work = [journal(pages, options, either), polled(pages, options, either)]
  await Promise.race(work.map((each) => each.catch(() => undefined)))
  ended.abort()
  await Promise.allSettled(work)
}

async function journal(
  pages: ControllerPages,
  { tell }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const known = await journalOf(pages, signal)
  tell({ kind: 'journal', entries: known })
  for await (const entry of followedJournal(pages, known.at(-1), signal))
    tell({ kind: 'journal', entries: [entry] })
}

async function polled(
  pages: ControllerPages,
  { clock, tell }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const read = async (path: string) => await readText(await pages.get(path, signal))
  const catalogue = new CatalogueReader(read, tell)
  const prices = new ChangedPage('/debug/prices', read)
  const verdicts = new ChangedPage('/debug/decisions', read)
  while (!signal.aborted) {
    const priced = await prices.read()
    if (priced !== undefined) tell({ kind: 'prices', prices: priced })
    await catalogue.read(clock.monotonic())
    signal.throwIfAborted()
    const decided = await verdicts.read()
    if (decided !== undefined) tell({ kind: 'decisions', decisions: decided.decisions })
    await clock.sleep(pollMs, signal)
  }
}

/** A page that is read again and again; with thousands of nodes it takes a while to parse. */
class ChangedPage<P extends keyof PageValues> {
  readonly #path: P
  readonly #read: (path: string) => Promise<string>
  #text: string | undefined

  constructor(path: P, read: (path: string) => Promise<string>) {
    this.#path = path
    this.#read = read
  }

  /** @returns undefined when it says the same as before. */
  async read(): Promise<PageValues[P] | undefined> {
    const text = await this.#read(this.#path)
    if (text === this.#text) return undefined
    // Others have their turn before what takes long, and after it.
    await eventLoopTurns.next()
    const value = JSON.parse(text) as PageValues[P]
    await eventLoopTurns.next()
    this.#text = text
    return value
  }
}

/** Reads what is for sale, and only when it may be something else than before. */
class CatalogueReader {
  readonly #read: (path: string) => Promise<string>
  readonly #tell: ControllerOptions['tell']
  #avoided: string | undefined
  #readMs = Number.NEGATIVE_INFINITY
  #text: string | undefined

  constructor(read: (path: string) => Promise<string>, tell: ControllerOptions['tell']) {
    this.#read = read
    this.#tell = tell
  }

  /** A controller that does not tell it (an older one) tells the rest all the same. @param nowMs monotonic. */
  async read(nowMs: number): Promise<void> {
    try {
      const avoided = await this.#read('/debug/offerings')
      if (avoided === this.#avoided && nowMs - this.#readMs < catalogueMs) return
      const text = await this.#read('/debug/catalogue')
      if (text !== this.#text) {
        const { catalogues, priceUnit } = JSON.parse(text) as TakenCatalogues
        this.#tell({
          kind: 'catalogues',
          catalogues,
          ...(priceUnit !== undefined && { currency: priceUnit }),
        })
      }
      this.#avoided = avoided
      this.#readMs = nowMs
      this.#text = text
    } catch (error) {
      this.#tell({ kind: 'absent', what: 'offerings', why: messageOf(error) })
    }
  }
}
