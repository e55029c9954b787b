/** The source of an answer's facts: a file, the controller, or the objects of the cluster (ask.md 1). */
import { type Snapshot, SnapshotReader } from '@tenon/ask/snapshot'
import { rfc3339 } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { type ClusterConnection, onCluster } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { type ControllerReach, reachController, snapshotPath } from './controller.ts'
import { snapshotFile, whole } from './snapshot-file.ts'

/**
 * Reads the facts that the flags select. Their limitations are printed on stderr.
 * @throws CliError if there are none.
 */
export async function snapshotFrom(io: Io, flags: SourceFlags): Promise<Snapshot> {
  const { snapshot: path } = flags
  if (path !== undefined) return await snapshotFile(io, path)
  if (flags.controller !== undefined) {
    const reached = await reachController(flags, undefined, io.interrupted)
    if (reached.kind === 'reached') return await controllerSnapshot(reached.reach, io.interrupted)
    throw new CliError('message' in reached ? reached.message : `no controller at ${flags.controller}`)
  }
  return await onCluster(io, flags, (connection) => snapshotOfCluster(io, flags, connection))
}

/** As {@link snapshotFrom}, of a cluster that is connected. */
export async function snapshotOfCluster(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
): Promise<Snapshot> {
  const reached = await reachController(flags, connection, io.interrupted)
  if (reached.kind === 'reached') return await controllerSnapshot(reached.reach, io.interrupted)
  if (reached.kind === 'forbidden')
    io.err(
      `Warning: the controller is not asked, as the right to ${reached.right} is missing (${reached.message}); the answer comes from the objects of the cluster\n`,
    )
  if (reached.kind === 'unreachable')
    io.err(
      `Warning: the controller is not asked: ${reached.message}; the answer comes from the objects of the cluster\n`,
    )
  const { snapshotOfObjects } = await import('./objects-snapshot.ts')
  const snapshot = await snapshotOfObjects(io, flags, connection)
  if (snapshot.origin.kind === 'objects') io.err(`Instance types: ${snapshot.origin.catalogue}\n`)
  return snapshot
}

/**
 * Reads a snapshot from the controller while it is being written.
 * @throws CliError if it is incomplete.
 */
export async function controllerSnapshot(reach: ControllerReach, signal: AbortSignal): Promise<Snapshot> {
  const reader = new SnapshotReader()
  for await (const part of await reach.get(snapshotPath, signal)) reader.take(part)
  return whole(reader.end(), `the facts of ${reach.leader}`)
}

/** The age and source of the facts, as one sentence. */
export function originText({ takenAtMs, origin }: Pick<Snapshot, 'takenAtMs' | 'origin'>): string {
  const at = rfc3339(takenAtMs)
  if (origin.kind === 'objects')
    return `Facts of ${at}, from the objects of ${origin.server}; instance types: ${origin.catalogue}.`
  const who = origin.isLeading ? 'the leading controller' : 'a controller that does not lead'
  return `Facts of ${at}, from ${who} ${origin.identity}.`
}
