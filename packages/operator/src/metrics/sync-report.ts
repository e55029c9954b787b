/** Tells whether the state is good for decisions, and for how long it has not been (cluster-state.md 6). */
import type { Clock, Logger } from '@tenon/runtime'
import { shortened } from '../text.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from './metrics.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'stateNodes' | 'syncAnswers'>
  readonly metrics: Pick<Metrics, 'stateNodes' | 'stateSynced' | 'stateUnsyncedTime'>
  readonly clock: Clock
  readonly logger: Logger
}

const alarmingMs = 30_000
const repeatMs = 10_000

/** Shows every answer that the state gives about itself; nobody else has to. */
export function reportSync({ clock, logger, metrics, state }: Dependencies): void {
  let lastMs = Number.NEGATIVE_INFINITY
  state.syncAnswers.add(({ isSynced, unsyncedMs, waitingFor }) => {
    metrics.stateSynced.set(isSynced ? 1 : 0)
    metrics.stateUnsyncedTime.set(unsyncedMs / 1000)
    metrics.stateNodes.set(state.stateNodes().length)
    if (unsyncedMs <= alarmingMs || clock.monotonic() - lastMs < repeatMs) return
    lastMs = clock.monotonic()
    logger.error('decisions wait until the cluster state is synced', {
      duration: `${Math.round(unsyncedMs / 1000)}s`,
      waitingFor: shortened(waitingFor),
    })
  })
}
