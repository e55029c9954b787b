/** The picture of a source that is asked again and again. */
import { karpenterKinds, kinds } from '@tenon/api'
import { ofKind, type Snapshot } from '@tenon/ask'
import type { Clock } from '@tenon/runtime'
import type { ConsoleFacts } from '../answers/facts.ts'
import type { SourceEvent } from '../model/event.ts'
import { ConsoleModel } from '../model/model.ts'
import type { LiveView } from './console-server.ts'

const periodMs = 2000

/**
 * Follows what the facts say, until `signal` aborts.
 * @throws Error when there are none at the beginning.
 */
export async function followSnapshots(
  facts: Pick<ConsoleFacts, 'snapshot'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<LiveView> {
  const model = new ConsoleModel()
  let heardMs = clock.now()
  for (const event of eventsOf(await facts.snapshot(signal))) model.apply(event)
  const again = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal)
      try {
        const snapshot = await facts.snapshot(signal)
        heardMs = clock.now()
        model.apply({ kind: 'fresh' })
        for (const event of eventsOf(snapshot)) model.apply(event)
      } catch {
        signal.throwIfAborted()
        model.apply({ kind: 'stale', sinceMs: heardMs })
      }
    }
  }
  again().catch(() => undefined)
  return model
}

function* eventsOf(snapshot: Snapshot): Generator<SourceEvent, void, undefined> {
  const { catalogues, cloud, journal, nodeDecisions: decisions, origin } = snapshot
  const { nodeClaim, nodePool } = karpenterKinds
  yield { kind: 'replaced', resource: 'nodepools', objects: ofKind(snapshot, nodePool) }
  yield { kind: 'replaced', resource: 'nodeclaims', objects: ofKind(snapshot, nodeClaim) }
  yield { kind: 'replaced', resource: 'nodes', objects: ofKind(snapshot, kinds.node) }
  yield { kind: 'replaced', resource: 'pods', objects: ofKind(snapshot, kinds.pod) }
  const { priceUnit } = cloud
  yield { kind: 'catalogues', catalogues, ...(priceUnit !== undefined && { currency: priceUnit }) }
  if (origin.kind === 'controller') {
    yield { kind: 'journal', entries: journal }
    yield { kind: 'decisions', decisions }
    return
  }
  const why = 'no Tenon is asked, and only Tenon knows it'
  for (const what of ['journal', 'decisions']) yield { kind: 'absent', what, why }
}
