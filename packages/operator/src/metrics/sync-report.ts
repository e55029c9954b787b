/** Tells whether the state is good for decisions, and for how long it has not been (cluster-state.md 6). */
import type { OperatorContext } from '../context.ts'
import { shortened } from '../provisioning/scheduling-report.ts'

const alarmingMs = 30_000
const repeatMs = 10_000

/** Shows every answer that the state gives about itself; nobody else has to. */
export function reportSync({
  clock,
  logger,
  metrics,
  state,
}: Pick<OperatorContext, 'clock' | 'logger' | 'metrics' | 'state'>): void {
  let lastMs = Number.NEGATIVE_INFINITY
  state.syncAnswers.add(({ isSynced, unsyncedMs, waitingFor }) => {
    metrics.stateSynced.set(isSynced ? 1 : 0)
    metrics.stateUnsyncedTime.set(unsyncedMs / 1000)
    metrics.stateNodes.set(state.stateNodes().length)
    if (unsyncedMs <= alarmingMs || clock.monotonic() - lastMs < repeatMs) return
    lastMs = clock.monotonic()
    logger.error('decisions wait for the cluster state to be complete', {
      duration: `${Math.round(unsyncedMs / 1000)}s`,
      waitingFor: shortened(waitingFor),
    })
  })
}
