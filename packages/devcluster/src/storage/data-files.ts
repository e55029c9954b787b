import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** File operations in one data directory. */
export interface DataFiles {
  /** Names of all files. */
  list(): Promise<string[]>
  /** The lines of a file, in order; the last one may be incomplete. */
  lines(name: string): AsyncIterable<string>
  /** Appends to a file, which is created if necessary. Durable when it resolves. */
  append(name: string, text: string): Promise<void>
  /** Replaces a file atomically: after a crash it is complete or unchanged. */
  replace(name: string, chunks: Iterable<string>): Promise<void>
  remove(name: string): Promise<void>
}

/** A directory on disk, created if necessary. Only the owner can read its files. */
export class DirectoryFiles implements DataFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async list(): Promise<string[]> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    return readdir(this.#directory)
  }

  lines(name: string): AsyncIterable<string> {
    return createInterface({ input: createReadStream(this.#path(name)), crlfDelay: Number.POSITIVE_INFINITY })
  }

  async append(name: string, text: string): Promise<void> {
    const file = await open(this.#path(name), 'a', 0o600)
    try {
      await file.appendFile(text)
      await file.datasync()
    } finally {
      await file.close()
    }
  }

  async replace(name: string, chunks: Iterable<string>): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const temporary = this.#path(`${name}.new`)
    const file = await open(temporary, 'w', 0o600)
    try {
      for (const chunk of chunks) await file.appendFile(chunk)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(temporary, this.#path(name))
  }

  async remove(name: string): Promise<void> {
    await rm(this.#path(name), { force: true })
  }

  #path(name: string): string {
    return join(this.#directory, name)
  }
}
