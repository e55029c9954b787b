/** A recording as a file. */
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { inSlices, type Slicing } from '@tenon/runtime'
import { blockOf, fileHead, openTrace, type TraceBlock, type TraceEnd } from './blocks.ts'
import type { TraceRecord } from './records.ts'
import { emptyTraceState, type TraceState, TraceStateReader } from './trace-state.ts'

/** It holds names: only its owner may read it. */
const mode = 0o600
/** Records that are written together at most. */
const mostPending = 1024

/** Where records go. */
export interface TraceSink {
  write(record: TraceRecord): void
}

/** What a file says, as far as it can be read. */
export interface ReadTrace {
  readonly records: readonly TraceRecord[]
  readonly end: TraceEnd
  /** Bytes up to the end of the last whole block. */
  readonly wholeBytes: number
}

/** Records of bytes; `message` says why there are none. */
export function readTraceBytes(bytes: Uint8Array): ReadTrace | { readonly message: string } {
  const opened = openTrace(bytes)
  if (opened.kind === 'problem') return { message: opened.message }
  const records: TraceRecord[] = []
  const blocks = opened.blocks()
  let wholeBytes = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(64, bytes.length)).indexOf(0x0a) + 1
  for (;;) {
    const step = blocks.next()
    if (step.done === true) return { records, end: step.value, wholeBytes }
    for (const record of step.value.records) records.push(record)
    wholeBytes = step.value.endByte
  }
}

/** Reads a file. Rejects with the error of the file system. */
export async function readTraceFile(path: string): Promise<ReadTrace | { readonly message: string }> {
  return readTraceBytes(await readFile(path))
}

/** A file that is gone on with, and where it stands. */
export interface ResumedFile {
  readonly file: TraceFile
  readonly state: TraceState
}

/**
 * Goes on with a recording, or begins one where there is none. The thread is given up while a long one is read.
 * Rejects with the error of the file system.
 * @returns why the file is not written to: it is no recording.
 */
export async function resumedFile(
  path: string,
  slicing: Slicing,
): Promise<ResumedFile | { readonly message: string }> {
  const bytes = await readFile(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (bytes === undefined) return { file: await TraceFile.create(path), state: emptyTraceState() }
  const opened = openTrace(bytes)
  if (opened.kind === 'problem') return { message: opened.message }
  const reader = new TraceStateReader()
  const wholeBytes = await inSlices(states(bytes, opened.blocks(), reader), slicing)
  return { file: await TraceFile.append(path, wholeBytes), state: reader.state() }
}

/** Block by block. @returns bytes up to the end of the last whole block. */
function* states(
  bytes: Buffer,
  blocks: Generator<TraceBlock, TraceEnd, undefined>,
  reader: TraceStateReader,
): Generator<undefined, number, undefined> {
  let wholeBytes = bytes.subarray(0, 64).indexOf(0x0a) + 1
  for (const { records, endByte } of blocks) {
    for (const record of records) reader.take(record)
    wholeBytes = endByte
    yield
  }
  return wholeBytes
}

/** Writes records in blocks. Nothing of what {@link flush} has written is lost by a crash. */
export class TraceFile implements TraceSink {
  readonly #file: FileHandle
  #pending: TraceRecord[] = []
  #writing: Promise<void> = Promise.resolve()
  #failure: Error | undefined

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** Begins a file. Rejects with the error of the file system when it exists already. */
  static async create(path: string): Promise<TraceFile> {
    const file = await open(path, 'wx', mode)
    await file.appendFile(fileHead())
    return new TraceFile(file)
  }

  /**
   * Goes on behind the last whole block; what a crash left of another is cut off.
   * @param wholeBytes as {@link ReadTrace} has them; 0 where not even the first line is whole.
   */
  static async append(path: string, wholeBytes: number): Promise<TraceFile> {
    const file = await open(path, 'r+', mode)
    await file.truncate(wholeBytes)
    await file.close()
    const rest = await open(path, 'a', mode)
    if (wholeBytes === 0) await rest.appendFile(fileHead())
    return new TraceFile(rest)
  }

  /** Bytes written so far, those of earlier sessions among them. */
  get bytes(): Promise<number> {
    return this.#file.stat().then(({ size }) => size)
  }

  write(record: TraceRecord): void {
    this.#pending.push(record)
    if (this.#pending.length >= mostPending) void this.flush().catch(this.#failed)
  }

  /** Rejects with the first error of the file system. */
  async flush(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const records = this.#pending
    this.#pending = []
    if (records.length > 0) this.#writing = this.#append(records, this.#writing)
    await this.#writing
  }

  async #append(records: readonly TraceRecord[], before: Promise<void>): Promise<void> {
    await before
    // It writes on where the system takes only a part at a time.
    await this.#file.appendFile(blockOf(records))
  }

  async close(): Promise<void> {
    await this.flush()
    await this.#file.sync()
    await this.#file.close()
  }

  readonly #failed = (error: unknown): void => {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
  }
}
