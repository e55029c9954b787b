/** Shows a snapshot, or polls snapshots of a controller if the cluster cannot be watched. */
import type { Snapshot } from '@tenon/ask'
import { type Clock, eventLoopTurns, inSlices } from '@tenon/runtime'
import { ConsoleModel } from '../model/model.ts'
import { snapshotEvents } from '../sources/snapshot.ts'
import { snapshotObjects } from '../sources/snapshot-objects.ts'
import type { FollowedCluster } from './followed-cluster.ts'

const periodMs = 5000
const sliceMs = 8

/** The view of one snapshot. */
export async function snapshotView(snapshot: Snapshot, clock: Clock): Promise<FollowedCluster> {
  const model = new ConsoleModel()
  await taken(model, snapshot, clock)
  return { view: model, objects: snapshotObjects(() => snapshot) }
}

/**
 * Polls snapshots until `signal` aborts.
 * @throws Error if the first one fails.
 */
export async function followSnapshots(
  take: () => Promise<Snapshot>,
  clock: Clock,
  signal: AbortSignal,
): Promise<FollowedCluster> {
  const model = new ConsoleModel()
  let heardMs = clock.now()
  let latest = await take()
  await taken(model, latest, clock)
  const again = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal)
      try {
        latest = await take()
        heardMs = clock.now()
        model.apply({ kind: 'fresh' })
        await taken(model, latest, clock)
      } catch {
        signal.throwIfAborted()
        model.apply({ kind: 'stale', sinceMs: heardMs })
      }
    }
  }
  again().catch(() => undefined)
  return { view: model, objects: snapshotObjects(() => latest) }
}

async function taken(model: ConsoleModel, snapshot: Snapshot, clock: Clock): Promise<void> {
  const slicing = { clock, turns: eventLoopTurns, sliceMs }
  for (const event of snapshotEvents(snapshot)) await inSlices(model.applying(event), slicing)
}
