/** Live data of the page: a snapshot, a controller alone, or a watched cluster (console.md 1). */
import {
  ConsoleModel,
  type FollowedCluster,
  followSnapshots,
  snapshotView,
  type SourceEvent,
} from '@tenon/console'
import type { Clock } from '@tenon/runtime'
import type { Io } from '../../io.ts'
import { type ClusterConnection, hasCluster, onCluster } from '../../kubectl/connection.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { snapshotFile } from '../../source/snapshot-file.ts'
import { snapshotFrom } from '../../source/snapshot.ts'
import { followLive } from './live.ts'
import { clusterObjects } from './objects.ts'

/** How long the first view waits for all lists. After that it shows what has arrived. */
const firstPictureMs = 10_000
const lookMs = 50

export interface Following {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called if something that was read may no longer be read, so that the view has too much. */
  readonly withdrawn?: () => void
}

/**
 * Follows the source until `signal` aborts.
 * @throws CliError or KubectlError if there is none.
 */
export async function followedView(
  io: Io,
  flags: SourceFlags,
  { clock, signal, withdrawn = () => undefined }: Following,
): Promise<FollowedCluster> {
  const { controller, snapshot } = flags
  const own = { ...io, err: () => undefined, interrupted: AbortSignal.any([io.interrupted, signal]) }
  if (snapshot !== undefined) return await snapshotView(await snapshotFile(io, snapshot), clock)
  if (controller !== undefined && !hasCluster(io, flags))
    return await followSnapshots(async () => await snapshotFrom(own, flags), clock, signal)
  return await new Promise((resolve, reject) => {
    onCluster(own, flags, async (connection) => {
      const model = new ConsoleModel()
      const emit = (event: SourceEvent) => {
        if (event.kind === 'absent' && model.hasRead(event.what)) withdrawn()
        model.apply(event)
      }
      await followLive(own, flags, { connection, emit }, own.interrupted)
      await filled(model, connection, own.interrupted)
      resolve({ view: model, objects: clusterObjects(connection) })
      await aborted(own.interrupted)
    }).catch(reject)
  })
}

async function filled(
  model: ConsoleModel,
  { clock }: Pick<ClusterConnection, 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const endMs = clock.monotonic() + firstPictureMs
  while (!model.isFilled && clock.monotonic() < endMs) await clock.sleep(lookMs, signal)
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
