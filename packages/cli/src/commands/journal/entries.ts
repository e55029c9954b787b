/** Entries of the journal as the controller's page tells them. */
import { entryFrom, type JournalEntry } from '@tenon/operator'
import { linesOf } from './lines-of.ts'

const mostLineBytes = 1024 * 1024

/** A newer controller may note entries of a kind that this program does not know; they are left out. */
export async function* entriesIn(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<JournalEntry, void, undefined> {
  for await (const { bytes } of linesOf(body, mostLineBytes)) {
    const read = bytes === undefined ? undefined : entryFrom(new TextDecoder().decode(bytes))
    if (read !== undefined && 'entry' in read) yield read.entry
  }
}
