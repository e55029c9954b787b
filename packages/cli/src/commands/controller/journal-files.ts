/** The journal on disk: files of JSON lines in one directory, appended to, rotated and limited in size. */
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Journal } from '@tenon/operator'
import type { Logger } from '@tenon/runtime'
import {
  journalFileName,
  linesOf,
  mostLineBytes,
  sealed,
  sealedEntry,
  unsealed,
} from '../../source/journal-lines.ts'

const mebibyte = 1024 * 1024

export interface JournalSizes {
  /** A file of this size is rotated. */
  readonly fileBytes: number
  /** Limit of all files together. */
  readonly allBytes: number
  /** How much of the newest files is read at start; bounds the memory of the journal. */
  readonly restoredBytes: number
  /** Limit of the data that waits to be written. */
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

export class JournalFiles {
  readonly #directory: string
  readonly #logger: Logger
  readonly #sizes: JournalSizes
  #file: FileHandle | undefined
  /** The current file. */
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
   * Reads the entries of earlier processes into the journal, and writes new ones from then on.
   * @throws Error of the file system if the directory cannot be created or read.
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
    journal.stored = (signal) => files.lines(signal)
    return files
  }

  /** Whole lines of all files, oldest first. A file that goes or cannot be read is left out. */
  async *lines(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    await this.flush()
    for (const { name } of await this.#list().catch(() => []))
      try {
        const stream = createReadStream(join(this.#directory, name), { signal })
        for await (const { bytes } of linesOf(stream, mostLineBytes)) {
          const line = bytes && unsealed(bytes)
          if (line !== undefined) yield line
        }
      } catch (error) {
        signal.throwIfAborted()
        this.#logger.warn('a file of the journal cannot be read', {
          path: join(this.#directory, name),
          error,
        })
      }
  }

  /** Resolves once all entries so far are written, or writing failed. */
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

  /** @returns the number of entries. An unreadable file is reported and left as it is. */
  async #read({ name }: JournalFile, journal: Journal): Promise<number> {
    const path = join(this.#directory, name)
    const broken: { readonly line: number; readonly problem: string }[] = []
    let entries = 0
    try {
      for await (const { number, bytes, isCut } of linesOf(createReadStream(path), mostLineBytes)) {
        const read = sealedEntry(bytes)
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

  /** The journal's files in this directory, oldest first. */
  async #list(): Promise<readonly JournalFile[]> {
    const files: JournalFile[] = []
    for (const name of (await readdir(this.#directory)).toSorted()) {
      const number = journalFileName.exec(name)?.[1]
      if (number === undefined) continue
      // The file was removed after the directory was listed.
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

  /** The file to append to: a new one if the current one is full. */
  async #fileFor(bytes: number): Promise<FileHandle> {
    if (this.#file !== undefined && this.#current.bytes + bytes <= this.#sizes.fileBytes) return this.#file
    await this.#file?.close()
    this.#file = undefined
    // Another process may have written to it.
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
      // A process died in the middle of a line: the next line must not be appended to it.
      await file.appendFile('\n')
      this.#current.bytes++
    }
    return file
  }

  /** Removes the oldest files, so that one more full file stays within the limit. */
  async #makeRoom(files: readonly JournalFile[], bytes: number): Promise<void> {
    let total = files.reduce((sum, file) => sum + file.bytes, 0) + Math.max(bytes, this.#sizes.fileBytes)
    for (const file of files.slice(0, -1)) {
      if (total <= this.#sizes.allBytes) return
      await rm(join(this.#directory, file.name), { force: true })
      total -= file.bytes
    }
  }

  /** Logged once until the next successful write. */
  #failed(error: unknown): void {
    if (!this.#isFailing)
      this.#logger.error('the journal cannot be written; its entries are kept in memory only', {
        directory: this.#directory,
        error,
      })
    this.#isFailing = true
  }
}

async function endsWithLine(file: FileHandle, bytes: number): Promise<boolean> {
  if (bytes === 0) return true
  const { buffer } = await file.read({ buffer: Buffer.alloc(1), position: bytes - 1 })
  return buffer[0] === 10
}

function ignored(): undefined {}
