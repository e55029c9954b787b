/** Where the facts of an answer come from: a file, the controller, or the objects of the cluster (ask.md 1). */
import { type ReadSnapshot, type Snapshot, SnapshotReader } from '@tenon/ask'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { type ClusterConnection, onCluster } from '../kubectl/connection.ts'
import { type ControllerReach, reachController, snapshotPath } from '../kubectl/controller.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { snapshotFile } from './source.ts'
import { snapshotOfObjects } from './objects.ts'

/**
 * The facts that the flags name. What limits them is said on stderr.
 * @throws CliError when there are none.
 */
export async function snapshotFrom(io: Io, flags: SourceFlags): Promise<Snapshot> {
  const { snapshot: path } = flags
  if (path !== undefined) return await snapshotFile(io, path)
  if (flags.controller !== undefined) {
    const reached = await reachController(flags, undefined, io.interrupted)
    if (reached.kind === 'reached') return await snapshotOfController(reached.reach, io)
    throw new CliError('message' in reached ? reached.message : `no controller at ${flags.controller}`)
  }
  return await onCluster(io, flags, (connection) => snapshotOfCluster(io, flags, connection))
}

async function snapshotOfController(reach: ControllerReach, io: Pick<Io, 'interrupted'>): Promise<Snapshot> {
  // It is read while the controller writes it.
  const reader = new SnapshotReader()
  for await (const part of await reach.get(snapshotPath, io.interrupted)) reader.take(part)
  return whole(reader.end(), `the answer of ${reach.leader}`)
}

function whole(read: ReadSnapshot, source: string): Snapshot {
  if ('ok' in read) return read.ok
  throw new CliError(`${source}:${read.problem.line}: ${read.problem.message}`)
}

async function snapshotOfCluster(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
): Promise<Snapshot> {
  const reached = await reachController(flags, connection, io.interrupted)
  if (reached.kind === 'reached') return await snapshotOfController(reached.reach, io)
  if (reached.kind === 'forbidden')
    io.err(
      `Warning: the controller is not asked, as the right to ${reached.right} is missing (${reached.message}); the answer comes from the objects of the cluster\n`,
    )
  if (reached.kind === 'unreachable')
    io.err(
      `Warning: the controller is not asked: ${reached.message}; the answer comes from the objects of the cluster\n`,
    )
  const snapshot = await snapshotOfObjects(io, flags, connection)
  if (snapshot.origin.kind === 'objects') io.err(`Instance types: ${snapshot.origin.catalogue}\n`)
  return snapshot
}
