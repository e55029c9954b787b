/** `disruption.observed`: looks for moves of observed nodes, one method after the other. */
import type { ReconcileResult } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { SingletonSpec } from '../../controller.ts'
import type { MethodTurns } from '../../disruption/controller.ts'
import type { Settings } from '../../settings.ts'
import type { ObservedMoves } from './observed-moves.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'decidable'>
  readonly observed: Pick<ObservedPools, 'isAny'>
  readonly moves: ObservedMoves
  readonly turns: MethodTurns
  readonly settings: Pick<Settings, 'disruptionPollMs'>
}

export class ObservedDisruption implements SingletonSpec {
  readonly name = 'disruption.observed'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { moves, observed, settings, state, turns } = this.#deps
    const rest: ReconcileResult = { kind: 'after', delayMs: settings.disruptionPollMs }
    moves.settle()
    if (!observed.isAny || !state.decidable()) return rest
    await turns.prepare()
    // What one method has read holds nodes that it has just noted a move of.
    for (const method of turns.methods) await turns.take(method, {}, signal)
    return rest
  }
}
