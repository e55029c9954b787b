/** What the leading Tenon tells beside the objects: prices, verdicts on nodes, the journal (console.md 1). */
import type { ClaimPrices, JournalEntry, NodeDecision } from '@tenon/operator'
import { type Clock, messageOf, readText } from '@tenon/runtime'
import type { SourceEvent } from '../model/event.ts'

/** Pages of a controller's debug port. */
export interface ControllerPages {
  get(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}

export interface ControllerOptions {
  readonly clock: Clock
  /** Finds the controller; a sentence when there is none. */
  readonly reach: (signal: AbortSignal) => Promise<ControllerPages | string>
  readonly entriesIn: (body: AsyncIterable<Uint8Array>) => AsyncIterable<JournalEntry>
  readonly tell: (event: SourceEvent) => void
}

const pollMs = 5000
const againMs = 10_000

/** Follows the controller until `signal` aborts, whichever leads. */
export async function followController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { clock, reach, tell } = options
  while (!signal.aborted) {
    const found = await reach(signal).catch(messageOf)
    if (signal.aborted) return
    if (typeof found === 'string') {
      for (const what of ['journal', 'decisions', 'prices']) tell({ kind: 'absent', what, why: found })
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
  { tell, entriesIn }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const known: JournalEntry[] = []
  for await (const entry of entriesIn(await pages.get('/debug/journal', signal))) known.push(entry)
  tell({ kind: 'journal', entries: known })
  const last = known.at(-1)
  const since = last === undefined ? '' : `&since=${encodeURIComponent(last.at)}`
  const body = await pages.get(`/debug/journal?follow=true${since}`, signal)
  for await (const entry of entriesIn(body)) tell({ kind: 'journal', entries: [entry] })
}

async function polled(
  pages: ControllerPages,
  { clock, tell }: ControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const prices = JSON.parse(await readText(await pages.get('/debug/prices', signal))) as ClaimPrices
    tell({ kind: 'prices', prices })
    const { decisions } = JSON.parse(await readText(await pages.get('/debug/decisions', signal))) as {
      readonly decisions: readonly NodeDecision[]
    }
    tell({ kind: 'decisions', decisions })
    await clock.sleep(pollMs, signal)
  }
}
