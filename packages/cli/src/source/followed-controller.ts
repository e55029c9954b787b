/** Follows data of the leading controller for the viewer and the page (console.md 1). */
import type { TakenCatalogues } from '@tenon/ask'
import type { SourceEvent } from '@tenon/console'
import type { JournalEntry } from '@tenon/operator'
import { type Clock, eventLoopTurns, messageOf, readText } from '@tenon/runtime'
import { type ControllerPages, followedJournal, journalOf, type PageValues } from './controller-pages.ts'
import { entriesIn } from './journal-lines.ts'

interface ControllerOptions {
  readonly clock: Clock
  /** Finds the controller, or returns why there is none and reports prices from another source. */
  readonly reach: (signal: AbortSignal) => Promise<ControllerPages | string>
  readonly emit: (event: SourceEvent) => void
}

const pollMs = 5000
/** The catalogue is read again if launches avoid other offerings, and after this time, as prices change too. */
const catalogueMs = 300_000
const againMs = 10_000

/** Follows the leading controller until `signal` aborts, and the next leader after it. */
export async function followController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { clock, reach, emit } = options
  while (!signal.aborted) {
    const found = await reach(signal).catch(messageOf)
    if (signal.aborted) return
    if (typeof found === 'string') {
      for (const what of ['journal', 'decisions']) emit({ kind: 'absent', what, why: found })
    } else await attended(found, options, signal)
    await clock.sleep(againMs, signal).catch(() => undefined)
  }
}

/** Follows one controller until one of its pages fails. */
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
  { emit }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  emit({ kind: 'past', entries: [], stage: 'begins' })
  const known = await journalOf(pages, signal)
  emit({ kind: 'journal', entries: known })
  await Promise.all([past(pages, emit, signal), newEntries(pages, known.at(-1), emit, signal)])
}

/** How far back the page looks: two months and some days. */
const pastHours = 70 * 24
const entriesAtOnce = 200

/** Entries of earlier processes, too. A controller that does not keep them gives those that it has. */
async function past(
  pages: ControllerPages,
  emit: ControllerOptions['emit'],
  signal: AbortSignal,
): Promise<void> {
  let entries: JournalEntry[] = []
  const path = `/debug/journal?stored=true&since=${pastHours}h`
  for await (const entry of entriesIn(await pages.get(path, signal))) {
    entries.push(entry)
    if (entries.length < entriesAtOnce) continue
    emit({ kind: 'past', entries, stage: 'goes on' })
    entries = []
    await eventLoopTurns.next()
  }
  emit({ kind: 'past', entries, stage: 'ends' })
}

async function newEntries(
  pages: ControllerPages,
  last: JournalEntry | undefined,
  emit: ControllerOptions['emit'],
  signal: AbortSignal,
): Promise<void> {
  for await (const entry of followedJournal(pages, last, signal)) emit({ kind: 'journal', entries: [entry] })
}

async function polled(
  pages: ControllerPages,
  { clock, emit }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const read = async (path: string) => await readText(await pages.get(path, signal))
  const catalogue = new CatalogueReader(read, emit)
  const prices = new ChangedPage('/debug/prices', read)
  const verdicts = new ChangedPage('/debug/decisions', read)
  while (!signal.aborted) {
    const priced = await prices.read()
    if (priced !== undefined) emit({ kind: 'prices', prices: priced })
    await catalogue.read(clock.monotonic())
    signal.throwIfAborted()
    const decided = await verdicts.read()
    if (decided !== undefined) emit({ kind: 'decisions', decisions: decided.decisions })
    await clock.sleep(pollMs, signal)
  }
}

/** A page that is polled; with thousands of nodes it takes a while to parse. */
class ChangedPage<P extends keyof PageValues> {
  readonly #path: P
  readonly #read: (path: string) => Promise<string>
  #text: string | undefined

  constructor(path: P, read: (path: string) => Promise<string>) {
    this.#path = path
    this.#read = read
  }

  /** @returns undefined if it has not changed. */
  async read(): Promise<PageValues[P] | undefined> {
    const text = await this.#read(this.#path)
    if (text === this.#text) return undefined
    // Yields to the event loop before and after parsing.
    await eventLoopTurns.next()
    const value = JSON.parse(text) as PageValues[P]
    await eventLoopTurns.next()
    this.#text = text
    return value
  }
}

/** Reads the catalogue, but only if it may have changed. */
class CatalogueReader {
  readonly #read: (path: string) => Promise<string>
  readonly #emit: ControllerOptions['emit']
  #avoided: string | undefined
  #readMs = Number.NEGATIVE_INFINITY
  #text: string | undefined

  constructor(read: (path: string) => Promise<string>, emit: ControllerOptions['emit']) {
    this.#read = read
    this.#emit = emit
  }

  /**
   * An older controller does not serve the catalogue; the rest still works.
   * @param nowMs monotonic.
   */
  async read(nowMs: number): Promise<void> {
    try {
      const avoided = await this.#read('/debug/offerings')
      if (avoided === this.#avoided && nowMs - this.#readMs < catalogueMs) return
      const text = await this.#read('/debug/catalogue')
      if (text !== this.#text) {
        const { catalogues, priceUnit } = JSON.parse(text) as TakenCatalogues
        this.#emit({
          kind: 'catalogues',
          catalogues,
          ...(priceUnit !== undefined && { currency: priceUnit }),
        })
      }
      this.#avoided = avoided
      this.#readMs = nowMs
      this.#text = text
    } catch (error) {
      this.#emit({ kind: 'absent', what: 'offerings', why: messageOf(error) })
    }
  }
}
