/** Reads lines and entries of the journal from a stream of bytes, or from its files. */
import { crc32 } from 'node:zlib'
import { entryFrom, type JournalEntry } from '@tenon/operator/objects'

/** Limit of a line; entries are far shorter. */
export const mostLineBytes: number = 1024 * 1024

export const journalFileName: RegExp = /^journal-(\d{8})\.jsonl$/

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

type ReadEntry = { readonly entry: JournalEntry; readonly line: string } | { readonly problem: string }

/** An entry as a line of a file. @param bytes undefined if the line is too long. */
export function sealedEntry(bytes: Uint8Array | undefined): ReadEntry {
  if (bytes === undefined) return { problem: 'it is too long' }
  const line = unsealed(bytes)
  if (line === undefined) return { problem: 'its checksum is missing or wrong' }
  const read = entryFrom(line)
  return 'entry' in read ? { entry: read.entry, line } : read
}

const sealPattern = /,"crc32":"([0-9a-f]{8})"\}$/

/**
 * Appends a checksum of the preceding text as the last field.
 * @param line a JSON object.
 */
export function sealed(line: string): string {
  const body = line.slice(0, -1)
  return `${body},"crc32":"${checksum(body)}"}`
}

/** @returns the line without its checksum; undefined if the checksum does not match. */
export function unsealed(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(bytes)
  const seal = sealPattern.exec(text)
  if (seal === null) return undefined
  const body = text.slice(0, seal.index)
  // A line with invalid UTF-8 does not match its checksum.
  return checksum(body) === seal[1] ? `${body}}` : undefined
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
