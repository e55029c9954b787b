/** Shows a snapshot, or polls snapshots of a controller if the cluster cannot be watched. */
import type { Snapshot } from '@tenon/ask'
import { type Clock, eventLoopTurns, inSlices } from '@tenon/runtime'
import { ConsoleModel } from '../model/model.ts'
import { snapshotEvents } from '../sources/snapshot.ts'
import type { LiveView } from './console-server.ts'

const periodMs = 5000
const sliceMs = 8

/** The view of one snapshot. */
export async function snapshotView(snapshot: Snapshot, clock: Clock): Promise<LiveView> {
  const model = new ConsoleModel()
  await taken(model, snapshot, clock)
  return model
}

/**
 * Polls snapshots until `signal` aborts.
 * @throws Error if the first one fails.
 */
export async function followSnapshots(
  take: () => Promise<Snapshot>,
  clock: Clock,
  signal: AbortSignal,
): Promise<LiveView> {
  const model = new ConsoleModel()
  let heardMs = clock.now()
  await taken(model, await take(), clock)
  const again = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal)
      try {
        const snapshot = await take()
        heardMs = clock.now()
        model.apply({ kind: 'fresh' })
        await taken(model, snapshot, clock)
      } catch {
        signal.throwIfAborted()
        model.apply({ kind: 'stale', sinceMs: heardMs })
      }
    }
  }
  again().catch(() => undefined)
  return model
}

async function taken(model: ConsoleModel, snapshot: Snapshot, clock: Clock): Promise<void> {
  const slicing = { clock, turns: eventLoopTurns, sliceMs }
  for (const event of snapshotEvents(snapshot)) await inSlices(model.applying(event), slicing)
}
