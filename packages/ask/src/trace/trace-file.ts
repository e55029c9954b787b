import { type FileHandle, open, readFile } from 'node:fs/promises'
import { inSlices, type Slicing } from '@tenon/runtime'
import { blockOf, fileHead, openTrace, type TraceBlock, type TraceEnd } from './blocks.ts'
import type { TraceRecord } from './records.ts'
import { emptyTraceState, type TraceState, TraceStateReader } from './trace-state.ts'

/** Readable by the owner only: it contains names. */
const mode = 0o600
/** Maximum number of records per block. */
const mostPending = 1024

export interface TraceSink {
  write(record: TraceRecord): void
}

/** The readable part of a file. */
export interface ReadTrace {
  readonly records: readonly TraceRecord[]
  readonly end: TraceEnd
  /** Size up to the end of the last complete block. */
  readonly wholeBytes: number
}

/** Parses records; `message` says why there are none. */
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

/** Rejects with the error of the file system. */
export async function readTraceFile(path: string): Promise<ReadTrace | { readonly message: string }> {
  return readTraceBytes(await readFile(path))
}

/** A file to continue, and the state at its end. */
export interface ResumedFile {
  readonly file: TraceFile
  readonly state: TraceState
}

/**
 * Continues a recording, or starts a new one if the file does not exist. Yields while it reads a long one.
 * Rejects with the error of the file system.
 * @returns why the file is not written to: it is not a recording.
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

/**
 * Yields after each block.
 * @returns the size up to the end of the last complete block.
 */
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

/** Writes records in blocks. A crash loses nothing that {@link flush} has written. */
export class TraceFile implements TraceSink {
  readonly #file: FileHandle
  #pending: TraceRecord[] = []
  #writing: Promise<void> = Promise.resolve()
  #failure: Error | undefined

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** Creates a file. Rejects with the error of the file system if it exists. */
  static async create(path: string): Promise<TraceFile> {
    const file = await open(path, 'wx', mode)
    await file.appendFile(fileHead())
    return new TraceFile(file)
  }

  /**
   * Continues after the last complete block, and truncates one that a crash left incomplete.
   * @param wholeBytes as in {@link ReadTrace}; 0 if even the first line is incomplete.
   */
  static async append(path: string, wholeBytes: number): Promise<TraceFile> {
    const file = await open(path, 'r+', mode)
    await file.truncate(wholeBytes)
    await file.close()
    const rest = await open(path, 'a', mode)
    if (wholeBytes === 0) await rest.appendFile(fileHead())
    return new TraceFile(rest)
  }

  /** Bytes written so far, including earlier sessions. */
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
    // The system may write only a part at a time.
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
