/** The journal on disk: files of JSON lines in one directory, appended to, rotated and bounded. */
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Journal } from '@tenon/operator'
import { entryFrom } from '@tenon/operator/objects'
import type { Logger } from '@tenon/runtime'
import { linesOf } from '../../source/journal-lines.ts'

const mebibyte = 1024 * 1024
/** What a line may take; entries are far shorter. */
const mostLineBytes = mebibyte

export interface JournalSizes {
  /** A file that has so much is not appended to any more. */
  readonly fileBytes: number
  /** Of all files together. */
  readonly allBytes: number
  /** Of the newest files, how much is read at the start: no more than this is kept in memory. */
  readonly restoredBytes: number
  /** What may wait to be written. */
  readonly waitingBytes: number
}

const defaultSizes: JournalSizes = {
  fileBytes: 15 * mebibyte,
  allBytes: 256 * mebibyte,
  restoredBytes: 24 * mebibyte,
  waitingBytes: 4 * mebibyte,
}

interface JournalFile {
  readonly name: string
  readonly number: number
  readonly bytes: number
}

const namePattern = /^journal-(\d{8})\.jsonl$/

export class JournalFiles {
  readonly #directory: string
  readonly #logger: Logger
  readonly #sizes: JournalSizes
  #file: FileHandle | undefined
  /** Number and size of the file that is appended to. */
  #current = { number: 0, bytes: 0 }
  #waiting: string[] = []
  #waitingBytes = 0
  #writing: Promise<void> | undefined
  #isFailing = false

  private constructor(directory: string, logger: Logger, sizes: JournalSizes) {
    this.#directory = directory
    this.#logger = logger
    this.#sizes = sizes
  }

  /**
   * Reads what earlier processes have noted into the journal, and writes what it notes from then on.
   * @throws Error of the file system when the directory cannot be created or read.
   */
  static async attach(
    directory: string,
    journal: Journal,
    logger: Logger,
    sizes: JournalSizes = defaultSizes,
  ): Promise<JournalFiles> {
    await mkdir(directory, { recursive: true })
    const files = new JournalFiles(directory, logger, sizes)
    await files.#restore(journal)
    journal.follow(({ line }) => {
      files.#append(line)
    })
    return files
  }

  /** Resolves once everything noted so far is written, or cannot be. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  async close(): Promise<void> {
    await this.flush()
    await this.#file?.close()
    this.#file = undefined
  }

  async #restore(journal: Journal): Promise<void> {
    const newest: JournalFile[] = []
    let bytes = 0
    for (const file of (await this.#list()).toReversed()) {
      if (bytes >= this.#sizes.restoredBytes) break
      bytes += file.bytes
      newest.unshift(file)
    }
    let entries = 0
    for (const file of newest) entries += await this.#read(file, journal)
    if (newest.length > 0)
      this.#logger.info('read the journal', { directory: this.#directory, files: newest.length, entries })
  }

  /** @returns how many entries it holds. A file that cannot be read is told of, and left as it is. */
  async #read({ name }: JournalFile, journal: Journal): Promise<number> {
    const path = join(this.#directory, name)
    const broken: { readonly line: number; readonly problem: string }[] = []
    let entries = 0
    try {
      for await (const { number, bytes, isCut } of linesOf(createReadStream(path), mostLineBytes)) {
        const read = readLine(bytes)
        if ('entry' in read) {
          journal.restore(read.entry, read.line)
          entries++
        } else broken.push({ line: number, problem: isCut ? 'it is cut off' : read.problem })
      }
    } catch (error) {
      this.#logger.warn('a file of the journal cannot be read', { path, entries, error })
    }
    const [first] = broken
    if (first !== undefined)
      this.#logger.warn('lines of the journal cannot be read and are left out; the others are read', {
        path,
        lines: broken.length,
        firstLine: first.line,
        problem: first.problem,
        entries,
      })
    return entries
  }

  /** Files of this directory that are the journal's, oldest first. */
  async #list(): Promise<readonly JournalFile[]> {
    const files: JournalFile[] = []
    for (const name of (await readdir(this.#directory)).toSorted()) {
      const number = namePattern.exec(name)?.[1]
      if (number === undefined) continue
      // One that has just been removed is not among them.
      const found = await stat(join(this.#directory, name)).catch(ignored)
      if (found?.isFile() === true) files.push({ name, number: Number(number), bytes: found.size })
    }
    return files
  }

  #append(line: string): void {
    const text = `${sealed(line)}\n`
    if (this.#waitingBytes + text.length > this.#sizes.waitingBytes) {
      this.#failed(new Error('the disk does not keep up; entries are not written'))
      return
    }
    this.#waiting.push(text)
    this.#waitingBytes += text.length
    this.#writing ??= this.#write()
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const bytes = Buffer.from(this.#waiting.join(''))
      this.#waiting = []
      this.#waitingBytes = 0
      try {
        const file = await this.#fileFor(bytes.length)
        await file.appendFile(bytes)
        this.#current.bytes += bytes.length
        this.#isFailing = false
      } catch (error) {
        await this.#file?.close().catch(ignored)
        this.#file = undefined
        this.#failed(error)
      }
    }
    this.#writing = undefined
  }

  /** The file to append to: a new one when the current one has enough. */
  async #fileFor(bytes: number): Promise<FileHandle> {
    if (this.#file !== undefined && this.#current.bytes + bytes <= this.#sizes.fileBytes) return this.#file
    await this.#file?.close()
    this.#file = undefined
    // Others may have written here meanwhile.
    const files = await this.#list()
    const last = files.at(-1)
    const isFull = last === undefined || last.bytes + bytes > this.#sizes.fileBytes
    const number = (last?.number ?? 0) + (isFull ? 1 : 0)
    await this.#makeRoom(files, bytes)
    const path = join(this.#directory, `journal-${String(number).padStart(8, '0')}.jsonl`)
    const file = await open(path, 'a+', 0o600)
    this.#file = file
    this.#current = { number, bytes: isFull ? 0 : last.bytes }
    if (!isFull && !(await endsWithLine(file, last.bytes))) {
      // A process died in the middle of a line: what follows must not be taken for a part of it.
      await file.appendFile('\n')
      this.#current.bytes++
    }
    return file
  }

  /** Removes the oldest files, so that a whole file more stays within the bound. */
  async #makeRoom(files: readonly JournalFile[], bytes: number): Promise<void> {
    let total = files.reduce((sum, file) => sum + file.bytes, 0) + Math.max(bytes, this.#sizes.fileBytes)
    for (const file of files.slice(0, -1)) {
      if (total <= this.#sizes.allBytes) return
      await rm(join(this.#directory, file.name), { force: true })
      total -= file.bytes
    }
  }

  /** Told once, until something could be written again. */
  #failed(error: unknown): void {
    if (!this.#isFailing)
      this.#logger.error('the journal cannot be written; its entries are kept in memory only', {
        directory: this.#directory,
        error,
      })
    this.#isFailing = true
  }
}

type Read =
  | { readonly entry: Parameters<Journal['restore']>[0]; readonly line: string }
  | { readonly problem: string }

function readLine(bytes: Uint8Array | undefined): Read {
  if (bytes === undefined) return { problem: 'it is too long' }
  const line = unsealed(bytes)
  if (line === undefined) return { problem: 'its checksum is missing or wrong' }
  const read = entryFrom(line)
  return 'entry' in read ? { entry: read.entry, line } : read
}

async function endsWithLine(file: FileHandle, bytes: number): Promise<boolean> {
  if (bytes === 0) return true
  const { buffer } = await file.read({ buffer: Buffer.alloc(1), position: bytes - 1 })
  return buffer[0] === 10
}

function ignored(): undefined {}

const sealPattern = /,"crc32":"([0-9a-f]{8})"\}$/

/**
 * The line with a checksum of what is before it as its last field.
 * @param line a JSON object.
 */
function sealed(line: string): string {
  const body = line.slice(0, -1)
  return `${body},"crc32":"${checksum(body)}"}`
}

/** @returns the line without its checksum; undefined when it is not the one that was written. */
function unsealed(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(bytes)
  const seal = sealPattern.exec(text)
  if (seal === null) return undefined
  const body = text.slice(0, seal.index)
  // Of a text with a broken character the checksum is another one.
  return checksum(body) === seal[1] ? `${body}}` : undefined
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
