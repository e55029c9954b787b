/** What the controller tells beside the objects: prices, why nodes are kept, and its journal. */
import type { ClaimPrices, JournalEntry, NodeDecision } from '@tenon/operator'
import { readText } from '@tenon/runtime'
import type { ControllerReach } from './controller.ts'
import { entriesIn } from './journal-lines.ts'

/** The debug port of a controller. */
export type ControllerPages = Pick<ControllerReach, 'get'>

/** Pages with one JSON value, and the types of those. */
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

/** @param sinceMs how far back; all of it without. */
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

/** Entries of the moment of `after`, which may be among them, and all that come until `signal` aborts. */
export async function* followedJournal(
  pages: ControllerPages,
  after: JournalEntry | undefined,
  signal: AbortSignal,
): AsyncGenerator<JournalEntry, void, undefined> {
  const since = after === undefined ? '' : `&since=${encodeURIComponent(after.at)}`
  yield* entriesIn(await pages.get(`/debug/journal?follow=true${since}`, signal))
}
