/** The picture of a controller that is asked again and again, where no cluster can be watched. */
import type { Snapshot } from '@tenon/ask'
import type { Clock } from '@tenon/runtime'
import { ConsoleModel } from '../model/model.ts'
import { snapshotEvents } from '../sources/snapshot.ts'
import type { LiveView } from './console-server.ts'

const periodMs = 5000

/**
 * Follows what each snapshot says, until `signal` aborts.
 * @throws Error when there is none at the beginning.
 */
export async function followSnapshots(
  take: () => Promise<Snapshot>,
  clock: Clock,
  signal: AbortSignal,
): Promise<LiveView> {
  const model = new ConsoleModel()
  let heardMs = clock.now()
  for (const event of snapshotEvents(await take())) model.apply(event)
  const again = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal)
      try {
        const snapshot = await take()
        heardMs = clock.now()
        model.apply({ kind: 'fresh' })
        for (const event of snapshotEvents(snapshot)) model.apply(event)
      } catch {
        signal.throwIfAborted()
        model.apply({ kind: 'stale', sinceMs: heardMs })
      }
    }
  }
  again().catch(() => undefined)
  return model
}
