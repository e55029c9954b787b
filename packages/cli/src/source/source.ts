/** Where the facts of an answer come from: a file, the controller, or the objects alone (ask.md 1). */
import { type ReadSnapshot, readSnapshot, type Snapshot, SnapshotReader } from '@tenon/ask'
import { resolve } from 'node:path'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import type { ClusterConnection } from '../kubectl/connection.ts'
import { type ControllerReach, reachController, type Reached, snapshotPath } from '../kubectl/controller.ts'
import type { SourceFlags } from '../kubectl/flags.ts'

/**
 * The snapshot in a file.
 * @throws CliError naming the file, the line and what is wrong.
 */
export async function snapshotFile({ cwd }: Pick<Io, 'cwd'>, path: string): Promise<Snapshot> {
  try {
    return whole(await readSnapshot(resolve(cwd, path)), path)
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    throw new CliError(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/**
 * The snapshot that the controller gives.
 * @throws CliError when what it gives is not whole.
 */
export async function controllerSnapshot(reach: ControllerReach, signal: AbortSignal): Promise<Snapshot> {
  const reader = new SnapshotReader()
  for await (const part of await reach.get(snapshotPath, signal)) reader.take(part)
  return whole(reader.end(), `the snapshot of ${reach.leader}`)
}

function whole(read: ReadSnapshot, source: string): Snapshot {
  if ('ok' in read) return read.ok
  const { line, message } = read.problem
  throw new CliError(`${source}:${line}: ${message}`)
}

/**
 * Reaches the controller, or says on stderr what an answer lacks without it.
 * @param lacking what the answer lacks, such as `prices`.
 */
export async function reachOrTell(
  io: Pick<Io, 'err' | 'interrupted'>,
  flags: SourceFlags,
  connection: ClusterConnection,
  lacking: string,
): Promise<ControllerReach | undefined> {
  const reached = await reachController(flags, connection, io.interrupted)
  if (reached.kind === 'reached') return reached.reach
  io.err(`note: without ${lacking}: ${whyNot(reached)}\n`)
  return undefined
}

/** One sentence. */
export function whyNot(reached: Exclude<Reached, { kind: 'reached' }>): string {
  switch (reached.kind) {
    case 'noController':
      return 'no Tenon leads this cluster'
    case 'forbidden':
      return `the right is missing: ${reached.right} (${reached.message})`
    case 'unreachable':
      return reached.message
  }
}
