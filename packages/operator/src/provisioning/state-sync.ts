/** Waits for a cluster state that decisions can be made from. */
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'decidable'>
  readonly clock: Pick<Clock, 'sleep'>
}

const pollMs = 250

export class StateSync {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Resolves once every created claim is launched or gone: before that, capacity on its way is unknown. Those
   * that are stuck only hold up their own NodePool.
   */
  async settle(signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps
    while (!state.decidable()) await clock.sleep(pollMs, signal)
  }
}
