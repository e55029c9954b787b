/** Reads lines and entries of the journal from a stream of bytes. */
import { entryFrom, type JournalEntry } from '@tenon/operator/objects'

const mostLineBytes = 1024 * 1024

/** Skips entries of unknown kinds, which a newer controller may have written. */
export async function* entriesIn(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<JournalEntry, void, undefined> {
  for await (const { bytes } of linesOf(body, mostLineBytes)) {
    const read = bytes === undefined ? undefined : entryFrom(new TextDecoder().decode(bytes))
    if (read !== undefined && 'entry' in read) yield read.entry
  }
}

export interface ReadLine {
  /** Counts from 1. */
  readonly number: number
  /** Undefined if the line is too long. */
  readonly bytes: Uint8Array | undefined
  /** Whether the line is incomplete: the last one, without a newline. */
  readonly isCut: boolean
}

const newline = 10

/**
 * Yields the lines of a stream with bounded memory.
 * @param mostBytes longer lines are yielded without their bytes.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  mostBytes: number,
): AsyncGenerator<ReadLine, void, undefined> {
  let number = 1
  let parts: Uint8Array[] = []
  let length = 0
  const take = (part: Uint8Array) => {
    length += part.length
    if (length <= mostBytes) parts.push(part)
    else parts = []
  }
  const line = (isCut: boolean): ReadLine => {
    const bytes = length <= mostBytes ? Buffer.concat(parts) : undefined
    parts = []
    length = 0
    return { number: number++, bytes, isCut }
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      take(chunk.subarray(start, end))
      start = end + 1
      yield line(false)
    }
    take(chunk.subarray(start))
  }
  if (length > 0) yield line(true)
}
