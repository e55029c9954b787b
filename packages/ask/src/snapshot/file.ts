/** Snapshot files, compressed if the name ends in `.gz`. */
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { type ReadSnapshot, snapshotLines, SnapshotReader } from './lines.ts'
import type { Snapshot } from './snapshot.ts'

const isCompressed = (path: string): boolean => path.endsWith('.gz')

/** Readable by the owner only: it contains names and plans. */
const mode = 0o600

/** Writes a file atomically. Rejects with the error of the file system. */
export async function writeSnapshot(path: string, snapshot: Snapshot): Promise<void> {
  const unfinished = `${path}.part`
  const file = await open(unfinished, 'w', mode)
  try {
    const lines = Readable.from(withEnds(snapshotLines(snapshot)))
    const target = file.createWriteStream({ flush: true })
    await (isCompressed(path) ? pipeline(lines, createGzip(), target) : pipeline(lines, target))
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

function* withEnds(lines: Iterable<string>): Generator<string, void, undefined> {
  for (const line of lines) yield `${line}\n`
}

/**
 * Reads a file and yields to the event loop in between. Rejects with the error of the file system if the file
 * cannot be read.
 */
export async function readSnapshot(path: string): Promise<ReadSnapshot> {
  const file = createReadStream(path)
  if (!isCompressed(path)) return await readParts(file)
  try {
    return await pipeline(file, createGunzip(), readParts)
  } catch (error) {
    if (!isZlibError(error)) throw error
    return { problem: { line: 1, message: `the file cannot be unpacked: ${error.message}` } }
  }
}

async function readParts(parts: AsyncIterable<Uint8Array>): Promise<ReadSnapshot> {
  const reader = new SnapshotReader()
  for await (const part of parts) reader.take(part)
  return reader.end()
}

function isZlibError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
}
