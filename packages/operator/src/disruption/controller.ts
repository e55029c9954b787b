/** `disruption`: looks for nodes to remove or replace, one method after the other (disruption.md 2). */
import { isKubeError, type ReconcileResult } from '@tenon/kube'
import type { SingletonSpec } from '../controller.ts'
import type { DisruptionBudgets } from './budget.ts'
import type { MethodTurns, Round } from './method-turns.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PassAges } from '../metrics/pass-ages.ts'
import type { Settings } from '../settings.ts'

/** What passes before this one, or processes before this one, may have left undone. */
interface Leftover {
  settle(signal: AbortSignal): Promise<void>
}

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'decidable' | 'waitingFor'>
  readonly passAges: PassAges
  readonly budgets: Pick<DisruptionBudgets, 'logUnreadable'>
  /** Seen to in this order before anything is decided. */
  readonly leftovers: readonly Leftover[]
  readonly turns: MethodTurns
  readonly settings: Pick<Settings, 'disruptionPollMs'>
}

const unsyncedMs = 1000

/** Begins what the first method wants that wants anything; the next pass goes on from there. */
export class Disruption implements SingletonSpec {
  readonly name = 'disruption'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { passAges, state } = this.#deps
    passAges.waiting(this.name)
    const result = await this.#attempt(signal)
    if (result.kind !== 'backoff' && state.waitingFor().length === 0) passAges.complete(this.name)
    passAges.waiting(this.name)
    return result
  }

  async #attempt(signal: AbortSignal): Promise<ReconcileResult> {
    try {
      return await this.#pass(signal)
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      throw error
    }
  }

  async #pass(signal: AbortSignal): Promise<ReconcileResult> {
    const { budgets, leftovers, settings, state, turns } = this.#deps
    budgets.logUnreadable()
    if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    for (const leftover of leftovers) await leftover.settle(signal)
    await turns.prepare()
    const round: Round = {}
    const failures: unknown[] = []
    let isAgain = false
    for (const method of turns.methods) {
      try {
        const outcome = await turns.take(method, round, signal)
        if (outcome === 'begun') return { kind: 'after', delayMs: 0 }
        isAgain ||= outcome === 'again'
      } catch (error) {
        if (signal.aborted || isKubeError(error, 'conflict')) throw error
        // One method that fails does not keep the others from their turn.
        failures.push(error)
      }
      // Methods may take their time.
      if (!state.decidable()) return { kind: 'after', delayMs: unsyncedMs }
    }
    if (failures.length > 0) throw failures[0]
    return isAgain ? { kind: 'backoff' } : { kind: 'after', delayMs: settings.disruptionPollMs }
  }
}
