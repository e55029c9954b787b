/**
 * The bytes of a recording: a line that names the format, then blocks. A block has a length and a checksum of
 * four bytes each, and compressed lines of JSON, one per record. So a block that a crash cut off is detected.
 */
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import { type TraceRecord, traceVersion } from './records.ts'

const magic = 'tenon-record '
const headBytes = 8
/** No written block comes close; a damaged length may be any number. */
const mostBlockBytes = 64 * 1024 ** 2

/** The first line of a file. */
export function fileHead(): Buffer {
  return Buffer.from(`${magic}${traceVersion}\n`)
}

export function blockOf(records: readonly TraceRecord[]): Buffer {
  const text = records.map((record) => `${JSON.stringify(record)}\n`).join('')
  const payload = deflateRawSync(text)
  const head = Buffer.alloc(headBytes)
  head.writeUInt32LE(payload.length, 0)
  head.writeUInt32LE(checksum(payload), 4)
  return Buffer.concat([head, payload])
}

/** Covers the length too. */
function checksum(payload: Uint8Array): number {
  return crc32(payload, payload.length)
}

/** Why a file is not a recording. */
export interface TraceProblem {
  readonly kind: 'problem'
  readonly message: string
}

/** Where reading ended: at the end of the file, or before a damaged block. */
export type TraceEnd =
  | { readonly kind: 'whole' }
  | { readonly kind: 'cut'; readonly atByte: number; readonly because: string }

/** The content of a recording. */
export interface TraceBytes {
  readonly kind: 'trace'
  /** Complete blocks in order, each with the offset of the next one. */
  readonly blocks: () => Generator<TraceBlock, TraceEnd, undefined>
}

export interface TraceBlock {
  readonly records: readonly TraceRecord[]
  readonly endByte: number
}

export function openTrace(bytes: Uint8Array): TraceBytes | TraceProblem {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lineEnd = buffer.subarray(0, 64).indexOf(0x0a)
  if (lineEnd === -1 && isBegun(buffer))
    return { kind: 'trace', blocks: () => blocksOf(buffer.subarray(0, 0), 0, headless) }
  const line = lineEnd === -1 ? '' : buffer.toString('latin1', 0, lineEnd)
  if (!line.startsWith(magic) || !/^\d+$/.test(line.slice(magic.length)))
    return { kind: 'problem', message: 'this is no recording: it does not begin with "tenon-record"' }
  const version = Number(line.slice(magic.length))
  if (version > traceVersion || version < 1)
    return {
      kind: 'problem',
      message: `the recording has version ${version}, and this program reads versions up to ${traceVersion}: use a newer tenon`,
    }
  return { kind: 'trace', blocks: () => blocksOf(buffer, lineEnd + 1) }
}

/** Whether a process died before it had written the whole first line. */
function isBegun(buffer: Buffer): boolean {
  const head = fileHead()
  return buffer.length < head.length && head.subarray(0, buffer.length).equals(buffer)
}

const whole: TraceEnd = { kind: 'whole' }
const headless: TraceEnd = { kind: 'cut', atByte: 0, because: 'it ends within its first line' }

/** @param end the result if all blocks were read. */
function* blocksOf(
  buffer: Buffer,
  startByte: number,
  end: TraceEnd = whole,
): Generator<TraceBlock, TraceEnd, undefined> {
  let at = startByte
  while (at < buffer.length) {
    const block = blockAt(buffer, at)
    if (typeof block === 'string') return { kind: 'cut', atByte: at, because: block }
    yield block
    at = block.endByte
  }
  return end
}

/** @returns why there is none. */
function blockAt(buffer: Buffer, at: number): TraceBlock | string {
  if (at + headBytes > buffer.length) return 'it ends within a block'
  const length = buffer.readUInt32LE(at)
  const endByte = at + headBytes + length
  if (length > mostBlockBytes) return 'a block is damaged'
  if (endByte > buffer.length) return 'it ends within a block, or a block is damaged'
  const payload = buffer.subarray(at + headBytes, endByte)
  if (checksum(payload) !== buffer.readUInt32LE(at + 4)) return 'a block is damaged'
  const records = recordsIn(payload)
  return records === undefined ? 'a block cannot be unpacked' : { records, endByte }
}

function recordsIn(payload: Uint8Array): readonly TraceRecord[] | undefined {
  try {
    const lines = inflateRawSync(payload).toString('utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as TraceRecord)
  } catch {
    // Not compressed data, although the checksum is right.
    return undefined
  }
}
