/** Snapshots in files. */
import { resolve } from 'node:path'
import { readSnapshot, type ReadSnapshot, type Snapshot } from '@tenon/ask/snapshot'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'

/** @throws CliError naming the file, the line and the problem. */
export async function snapshotFile({ cwd }: Pick<Io, 'cwd'>, path: string): Promise<Snapshot> {
  const read = await readSnapshot(resolve(cwd, path)).catch((cause: unknown) => {
    throw new CliError(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  })
  return whole(read, path)
}

/** @throws CliError naming the source, the line and the problem. */
export function whole(read: ReadSnapshot, source: string): Snapshot {
  if ('ok' in read) return read.ok
  const { line, message } = read.problem
  throw new CliError(`${source}:${line}: ${message}`)
}
