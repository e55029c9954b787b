/** Data of the controller besides objects: prices, why nodes are kept, and its journal. */
import type { ClaimPrices, JournalEntry, NodeDecision } from '@tenon/operator'
import { readText } from '@tenon/runtime'
import type { ControllerReach } from './controller.ts'
import { entriesIn } from './journal-lines.ts'

export type ControllerPages = Pick<ControllerReach, 'get'>

/** Paths and types of pages with one JSON value. */
export interface PageValues {
  readonly '/debug/prices': ClaimPrices
  readonly '/debug/decisions': { readonly decisions: readonly NodeDecision[] }
}

export async function pageOf<P extends keyof PageValues>(
  pages: ControllerPages,
  path: P,
  signal: AbortSignal,
): Promise<PageValues[P]> {
  return JSON.parse(await readText(await pages.get(path, signal))) as PageValues[P]
}

/** @param sinceMs only entries since this many milliseconds ago; absent: all. */
export async function journalOf(
  pages: ControllerPages,
  signal: AbortSignal,
  sinceMs?: number,
): Promise<readonly JournalEntry[]> {
  const since = sinceMs === undefined ? '' : `?since=${Math.ceil(sinceMs / 1000)}s`
  const entries: JournalEntry[] = []
  for await (const entry of entriesIn(await pages.get(`/debug/journal${since}`, signal))) entries.push(entry)
  return entries
}

/** Entries from the time of `after` on, which may include `after` itself, and new ones until `signal` aborts. */
export async function* followedJournal(
  pages: ControllerPages,
  after: JournalEntry | undefined,
  signal: AbortSignal,
): AsyncGenerator<JournalEntry, void, undefined> {
  const since = after === undefined ? '' : `&since=${encodeURIComponent(after.at)}`
  yield* entriesIn(await pages.get(`/debug/journal?follow=true${since}`, signal))
}
